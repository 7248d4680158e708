import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Holds the elections in the file args[0], one in a line, and prints what becomes of each partition: leader, ISR, ELR, last known
 * ELR, recovery state, whether its leader epoch rises; or "none" if nothing changes. Fields are separated by spaces, lists by
 * commas, "-" is an empty list.
 */
public final class Elections {
    private static final int[] NOBODY = {};

    private Elections() {
    }

    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            System.out.println(outcome(line.split(" ")));
        }
    }

    private static String outcome(String[] given) {
        int[] replicas = ids(given[0]);
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(ids(given[1]))
            .setElr(ids(given[2]))
            .setLastKnownElr(ids(given[3]))
            .setLeader(Integer.valueOf(given[4]))
            .setLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(given[5])))
            .setLeaderEpoch(10)
            .setPartitionEpoch(10)
            .build();
        List<Integer> alive = list(given[7]);
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            partition, Uuid.ONE_UUID, 0, alive::contains, MetadataVersion.fromFeatureLevel(Short.parseShort(given[12])),
            Math.min(Integer.parseInt(given[9]), replicas.length), Boolean.parseBoolean(given[8]))
            .setTargetIsr(list(given[6]))
            .setElection(PartitionChangeBuilder.Election.valueOf(given[10]))
            .setTargetLeaderRecoveryState(LeaderRecoveryState.of(Byte.parseByte(given[13])))
            .setDefaultDirProvider(id -> DirectoryId.UNASSIGNED);
        if (!given[11].equals("-")) {
            builder.setUncleanShutdownReplicas(list(given[11]));
        }
        Optional<ApiMessageAndVersion> built = builder.build();
        if (built.isEmpty()) {
            return "none";
        }
        PartitionRegistration changed = partition.merge((PartitionChangeRecord) built.get().message());
        return changed.leader + " " + text(changed.isr) + " " + text(changed.elr) + " " + text(changed.lastKnownElr) + " "
            + changed.leaderRecoveryState.value() + " " + (changed.leaderEpoch > partition.leaderEpoch);
    }

    private static int[] ids(String text) {
        return text.equals("-") ? NOBODY : Arrays.stream(text.split(",")).mapToInt(Integer::parseInt).toArray();
    }

    private static List<Integer> list(String text) {
        return Arrays.stream(ids(text)).boxed().collect(Collectors.toList());
    }

    private static String text(int[] ids) {
        return ids.length == 0 ? "-" : Arrays.stream(ids).mapToObj(Integer::toString).collect(Collectors.joining(","));
    }
}
