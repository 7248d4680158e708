import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;

/**
 * Segments of magic 0 and 1 in every codec they allow, written by kafka-clients' own record builder, thinned
 * out by its own cleaner's filter, and read back by its own reader into expected.json.
 *
 * Usage: java -cp CLASSPATH LegacySegments.java DIRECTORY
 */
public class LegacySegments {
    private static final long NOW_MS = 1_400_000_000_000L;
    private static final byte V0 = RecordBatch.MAGIC_VALUE_V0;
    private static final byte V1 = RecordBatch.MAGIC_VALUE_V1;
    private static final byte V2 = RecordBatch.MAGIC_VALUE_V2;
    private static final CompressionType[] CODECS = {
        CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4
    };

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectNode EXPECTED = JSON.createObjectNode();
    private static Path directory;

    public static void main(String[] arguments) throws Exception {
        directory = Path.of(arguments[0]);
        for (byte magic : new byte[] {V0, V1}) {
            for (CompressionType codec : CODECS) {
                String name = "v" + magic + "-" + codec.name;
                ByteBuffer plain = segment(magic, codec, TimestampType.CREATE_TIME);
                write(name, plain.duplicate());
                write(name + "-cleaned", cleaned(magic, codec));
                write(name + "-upgraded", upgraded(plain.duplicate()));
            }
        }
        for (CompressionType codec : CODECS) {
            ByteBuffer stamped = segment(V1, codec, TimestampType.LOG_APPEND_TIME);
            write("v1-" + codec.name + "-stamped", stamped);
        }
        write("mixed", mixed());
        JSON.writerWithDefaultPrettyPrinter().writeValue(directory.resolve("expected.json").toFile(), EXPECTED);
    }

    /** Four batches of five records: 0 to 4 with nulls and empty fields, 5 to 9, 10 to 14 large, 15 to 19. */
    private static ByteBuffer segment(byte magic, CompressionType codec, TimestampType type) {
        ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
        for (int base = 0; base < 20; base += 5) {
            MemoryRecordsBuilder builder = builder(buffer, magic, codec, type, base);
            for (int i = base; i < base + 5; i++) {
                append(builder, magic, i, time(i));
            }
            buffer = end(builder);
        }
        buffer.flip();
        return buffer;
    }

    /** Times go up and down, so that the latest of a batch is not its last. */
    private static long time(int offset) {
        return NOW_MS + 1000L * (offset / 5) + (offset * 7) % 5;
    }

    /** What a cleaner leaves: gaps at the beginning, inside and at the end of batches, one batch gone. */
    private static boolean isKept(long offset) {
        return offset != 0 && offset != 3 && (offset < 5 || offset > 9) && offset != 14 && offset != 16;
    }

    /** What the cleaners of those days made of a segment: the same magic, relative offsets from what is left. */
    private static ByteBuffer cleaned(byte magic, CompressionType codec) {
        ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
        for (int base = 0; base < 20; base += 5) {
            MemoryRecordsBuilder builder = null;
            for (int i = base; i < base + 5; i++) {
                if (!isKept(i)) {
                    continue;
                }
                if (builder == null) {
                    builder = builder(buffer, magic, codec, TimestampType.CREATE_TIME, i);
                }
                append(builder, magic, i, time(i));
            }
            if (builder != null) {
                buffer = end(builder);
            }
        }
        buffer.flip();
        return buffer;
    }

    private static MemoryRecordsBuilder builder(
            ByteBuffer buffer, byte magic, CompressionType codec, TimestampType type, long baseOffset) {
        TimestampType kind = magic == V0 ? TimestampType.NO_TIMESTAMP_TYPE : type;
        long appended = kind == TimestampType.LOG_APPEND_TIME ? NOW_MS + 77 + baseOffset : RecordBatch.NO_TIMESTAMP;
        return MemoryRecords.builder(buffer, magic, Compression.of(codec).build(), kind, baseOffset, appended);
    }

    private static ByteBuffer end(MemoryRecordsBuilder builder) {
        builder.close();
        return builder.buffer();
    }

    private static void append(MemoryRecordsBuilder builder, byte magic, int i, long timestamp) {
        byte[] key = i == 1 ? null : i == 2 ? new byte[0] : bytes("key-" + i % 4);
        byte[] value = i == 3 ? null : i == 4 ? new byte[0] : bytes("value-" + i);
        if (i == 12) {
            value = new byte[100_000];
            for (int at = 0; at < value.length; at++) {
                value[at] = (byte) ('a' + at / 1000 % 26);
            }
        }
        builder.appendWithOffset(i, magic == V0 ? RecordBatch.NO_TIMESTAMP : timestamp, key, value);
    }

    /** What the cleaner of today makes of it: batches of magic 2. */
    private static ByteBuffer upgraded(ByteBuffer segment) {
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(0, 0) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.DELETE_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return isKept(record.offset());
            }
        };
        ByteBuffer output = ByteBuffer.allocate(4 << 20);
        MemoryRecords.FilterResult result =
            MemoryRecords.readableRecords(segment).filterTo(filter, output, BufferSupplier.NO_CACHING);
        ByteBuffer kept = result.outputBuffer();
        kept.flip();
        return kept;
    }

    /** The life of an old log: magic 0, magic 1, then magic 2 under two leader epochs. */
    private static ByteBuffer mixed() {
        ByteBuffer buffer = ByteBuffer.allocate(4 << 20);
        byte[] magics = {V0, V0, V1, V1, V2, V2};
        CompressionType[] codecs = {
            CompressionType.NONE, CompressionType.GZIP, CompressionType.NONE, CompressionType.LZ4,
            CompressionType.NONE, CompressionType.GZIP
        };
        for (int at = 0; at < magics.length; at++) {
            int base = 100 * at;
            MemoryRecordsBuilder builder = builder(buffer, magics[at], codecs[at], TimestampType.CREATE_TIME, base);
            for (int i = base; i < base + 100; i++) {
                append(builder, magics[at], i, NOW_MS + i);
            }
            buffer = end(builder);
        }
        buffer.flip();
        int epoch = 3;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(buffer.duplicate()).batches()) {
            if (batch.magic() == V2) {
                batch.setPartitionLeaderEpoch(epoch++);
            }
        }
        return buffer;
    }

    private static void write(String name, ByteBuffer segment) throws Exception {
        Path partition = directory.resolve(name + "-0");
        Files.createDirectories(partition);
        byte[] bytes = new byte[segment.remaining()];
        segment.get(bytes);
        Files.write(partition.resolve("00000000000000000000.log"), bytes);
        ObjectNode found = EXPECTED.putObject(name + "-0");
        ArrayNode batches = found.putArray("batches");
        ArrayNode records = found.putArray("records");
        int position = 0;
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batches.addObject()
                .put("base_offset", batch.baseOffset())
                .put("last_offset", batch.lastOffset())
                .put("position", position)
                .put("size", batch.sizeInBytes())
                .put("magic", batch.magic())
                .put("codec", batch.compressionType().name)
                .put("crc", batch.checksum())
                .put("max_timestamp", batch.maxTimestamp())
                .put("timestamp_type", batch.timestampType().toString())
                .put("valid", batch.isValid());
            position += batch.sizeInBytes();
            for (Record record : batch) {
                ObjectNode shown = records.addObject();
                shown.put("offset", record.offset());
                shown.put("timestamp", record.timestamp());
                show(shown, "key", record.key());
                show(shown, "value", record.value());
            }
        }
    }

    private static void show(ObjectNode into, String field, ByteBuffer content) {
        if (content == null) {
            into.putNull(field);
            return;
        }
        byte[] bytes = new byte[content.remaining()];
        content.get(bytes);
        if (bytes.length < 100) {
            into.put(field, new String(bytes, StandardCharsets.UTF_8));
            return;
        }
        CRC32 crc = new CRC32();
        crc.update(bytes);
        into.putObject(field).put("len", bytes.length).put("crc32", crc.getValue());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
