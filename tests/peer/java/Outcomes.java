import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Uuid;

/** What came out of a call, as text that two brokers can share: all public getters, without what differs from run to run. */
final class Outcomes {
    private static final int TIMEOUT_S = 30;
    private static final int DEPTH = 9;
    // They tell of a machine, a moment, or how far something has got.
    private static final Set<String> VOLATILE = Set.of(
        "port", "clusterId", "totalBytes", "usableBytes", "logEndOffset", "highWatermark", "lastFetchTimestamp",
        "lastCaughtUpTimestamp", "lastTimestamp", "transactionStartTimeMs", "producerId", "coordinatorEpoch",
        "finalizedFeaturesEpoch", "voterId", "consumerId", "memberId", "leaderEpoch", "timestamp", "size",
        "currentTransactionStartOffset", "offsetLag", "idString", "directoryId", "replicaDirectoryId", "epoch");
    private static final Set<String> SKIPPED = Set.of("hashCode", "toString", "getClass", "notify", "notifyAll", "wait", "clone",
        "iterator", "get", "hash");

    private Outcomes() {
    }

    static String of(Object value) {
        return text(value, DEPTH);
    }

    static String failed(Throwable e) {
        Throwable cause = e;
        while ((cause instanceof ExecutionException || cause instanceof InvocationTargetException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return "!" + cause.getClass().getSimpleName();
    }

    private static String text(Object value, int depth) {
        if (value == null) {
            return "null";
        }
        if (value instanceof KafkaFuture<?> future) {
            try {
                return text(future.get(TIMEOUT_S, TimeUnit.SECONDS), depth);
            } catch (ExecutionException | InterruptedException | TimeoutException e) {
                return failed(e);
            }
        }
        if (value instanceof Throwable e) {
            return failed(e);
        }
        if (value instanceof Optional<?> optional) {
            return optional.map(v -> text(v, depth)).orElse("none");
        }
        if (value instanceof OptionalLong optional) {
            return optional.isPresent() ? "" + optional.getAsLong() : "none";
        }
        if (value instanceof OptionalInt optional) {
            return optional.isPresent() ? "" + optional.getAsInt() : "none";
        }
        if (value instanceof Uuid uuid) {
            return uuid.equals(Uuid.ZERO_UUID) ? "zero" : "uuid";
        }
        if (value instanceof byte[] bytes) {
            return Arrays.toString(bytes);
        }
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(e -> text(e.getKey(), depth) + "=" + text(e.getValue(), depth)).sorted()
                .collect(Collectors.joining("; ", "{", "}"));
        }
        if (value instanceof Collection<?> items) {
            List<String> found = new ArrayList<>();
            items.forEach(item -> found.add(text(item, depth)));
            found.sort(null);
            return found.toString();
        }
        if (value instanceof String || value instanceof Number || value instanceof Boolean || value instanceof Enum<?>
            || value.getClass().getName().startsWith("java.") || depth == 0) {
            return value.toString();
        }
        return getters(value, depth);
    }

    private static String getters(Object value, int depth) {
        List<String> found = new ArrayList<>();
        Method[] methods = value.getClass().getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method method : methods) {
            String name = method.getName();
            if (method.getParameterCount() > 0 || Modifier.isStatic(method.getModifiers()) || method.isBridge()
                || method.getReturnType() == void.class || SKIPPED.contains(name)) {
                continue;
            }
            if (method.isAnnotationPresent(Deprecated.class)) {
                continue;
            }
            String shown;
            try {
                method.setAccessible(true);
                shown = text(method.invoke(value), depth - 1);
            } catch (ReflectiveOperationException | RuntimeException e) {
                shown = failed(e);
            }
            boolean told = !shown.startsWith("!") && !shown.startsWith("-") && !shown.equals("none") && !shown.equals("null");
            found.add(name + ":" + (VOLATILE.contains(name) && told ? "*" : shown));
        }
        return value.getClass().getSimpleName() + found;
    }
}
