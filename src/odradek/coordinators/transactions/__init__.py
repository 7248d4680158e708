"""The transaction coordinator: which producer owns a transactional id, and how its transactions end."""
