import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Calls every public method of Admin on the broker at args[0], a fresh node, and prints a line for each call: what was called,
 * a tab, what came of it. A method that no call reaches is printed as "not called".
 */
public final class AdminCalls {
    private final Admin admin;
    private final Set<String> called = new TreeSet<>();
    private final Map<String, Object> config;
    private final int node;
    private final String broker;

    private AdminCalls(Map<String, Object> config) throws Exception {
        this.config = config;
        this.admin = recorded(Admin.create(config));
        this.node = admin.describeCluster().controller().get().id();
        this.broker = "" + node;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", args[0], "default.api.timeout.ms", 10_000, "request.timeout.ms", 5_000);
        AdminCalls calls = new AdminCalls(config);
        calls.topics();
        calls.records();
        calls.configs();
        calls.groups();
        calls.otherGroups();
        calls.transactions();
        calls.replicas();
        calls.security();
        calls.cluster();
        calls.client();
        calls.missing().forEach(name -> System.out.println("not called\t" + name));
        System.out.flush();
        System.exit(0);
    }

    // --- calls ---------------------------------------------------------------------------------------

    private void call(String what, Callable<Object> work) {
        String outcome;
        try {
            outcome = Outcomes.of(work.call());
        } catch (Exception e) {
            outcome = Outcomes.failed(e);
        }
        System.out.println(what + "\t" + outcome.replace('\n', ' ').replace('\t', ' '));
    }

    /** What a call has changed is seen a little later: a broker follows its controller, members follow their group. */
    private static void until(Callable<Boolean> condition) throws Exception {
        while (!condition.call()) {
            Thread.sleep(10);
        }
    }

    /** An Admin that remembers which of its methods were called. */
    private Admin recorded(Admin real) {
        return (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class}, (proxy, method, args) -> {
            called.add(name(method));
            try {
                return method.invoke(real, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    private static String name(Method method) {
        return method.getName() + Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName)
            .collect(Collectors.joining(",", "(", ")"));
    }

    private List<String> missing() {
        return Arrays.stream(Admin.class.getMethods()).filter(m -> !Modifier.isStatic(m.getModifiers())).map(AdminCalls::name)
            .filter(name -> !called.contains(name)).sorted().toList();
    }

    private static TopicPartition tp(String topic, int partition) {
        return new TopicPartition(topic, partition);
    }

    private static Collection<NewTopic> topic(String name, int partitions, int replicas) {
        return List.of(new NewTopic(name, partitions, (short) replicas));
    }

    // --- topics --------------------------------------------------------------------------------------

    private void topics() throws Exception {
        call("createTopics", () -> admin.createTopics(topic("a", 2, 1)));
        call("createTopics of a name that is taken", () -> admin.createTopics(topic("a", 2, 1)));
        call("createTopics of a bad name", () -> admin.createTopics(topic("no/such", 2, 1)));
        call("createTopics with two replicas", () -> admin.createTopics(topic("x", 1, 2)));
        call("createTopics without numbers", () -> admin.createTopics(List.of(new NewTopic("b", Optional.empty(), Optional.empty()))));
        call("createTopics with an assignment", () -> admin.createTopics(List.of(new NewTopic("c", Map.of(0, List.of(node))))));
        call("createTopics with a config", () -> admin.createTopics(List.of(
            new NewTopic("d", 1, (short) 1).configs(Map.of("cleanup.policy", "compact")))));
        call("createTopics with a bad config", () -> admin.createTopics(List.of(
            new NewTopic("x", 1, (short) 1).configs(Map.of("no.such", "1")))));
        call("createTopics, options", () -> admin.createTopics(topic("x", 1, 1), new CreateTopicsOptions().validateOnly(true)));
        until(() -> admin.listTopics().names().get().size() == 4);
        call("listTopics", () -> admin.listTopics());
        call("listTopics, options", () -> admin.listTopics(new ListTopicsOptions().listInternal(true)));
        call("describeTopics", () -> admin.describeTopics(List.of("a", "none")));
        call("describeTopics, options", () -> admin.describeTopics(List.of("a"),
            new DescribeTopicsOptions().includeAuthorizedOperations(true).partitionSizeLimitPerResponse(1)));
        call("describeTopics by id", () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds());
        call("describeTopics of a collection", () -> admin.describeTopics(TopicCollection.ofTopicNames(List.of("a", "d"))));
        call("describeTopics of a collection, options", () -> admin.describeTopics(TopicCollection.ofTopicNames(List.of("a")),
            new DescribeTopicsOptions().includeAuthorizedOperations(true)));
        call("createPartitions", () -> admin.createPartitions(Map.of("a", NewPartitions.increaseTo(3))));
        call("createPartitions to fewer", () -> admin.createPartitions(Map.of("a", NewPartitions.increaseTo(1))));
        call("createPartitions of no topic", () -> admin.createPartitions(Map.of("none", NewPartitions.increaseTo(3))));
        call("createPartitions, options", () -> admin.createPartitions(Map.of("a", NewPartitions.increaseTo(4, List.of(List.of(node)))),
            new CreatePartitionsOptions().validateOnly(true)));
        call("deleteTopics", () -> admin.deleteTopics(List.of("b", "none")));
        call("deleteTopics, options", () -> admin.deleteTopics(List.of("c"), new DeleteTopicsOptions().timeoutMs(5_000)));
        call("deleteTopics of a collection", () -> admin.deleteTopics(TopicCollection.ofTopicNames(List.of("none"))));
        call("deleteTopics by id, options", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1, 2))),
            new DeleteTopicsOptions()).topicIdValues().values());
        until(() -> admin.listTopics().names().get().equals(Set.of("a", "d")));
        until(() -> admin.describeTopics(List.of("a")).allTopicNames().get().get("a").partitions().size() == 3);
    }

    private void records() throws Exception {
        Properties properties = new Properties();
        properties.putAll(config);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < 5; i++) {
                producer.send(new ProducerRecord<>("a", 0, 1_700_000_000_000L + i, null, new byte[10])).get();
            }
        }
        call("listOffsets, latest", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.latest(), tp("a", 1), OffsetSpec.latest())).all());
        call("listOffsets, earliest", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.earliest())).all());
        call("listOffsets, max timestamp", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.maxTimestamp())).all());
        call("listOffsets, timestamp", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.forTimestamp(1_700_000_000_002L))).all());
        call("listOffsets, earliest local", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.earliestLocal())).all());
        call("listOffsets, latest tiered", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.latestTiered())).all());
        call("listOffsets, earliest pending upload",
            () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.earliestPendingUpload())).all());
        call("listOffsets, options", () -> admin.listOffsets(Map.of(tp("a", 0), OffsetSpec.latest()),
            new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all());
        call("deleteRecords", () -> admin.deleteRecords(Map.of(tp("a", 0), RecordsToDelete.beforeOffset(2))));
        call("deleteRecords beyond the end", () -> admin.deleteRecords(Map.of(tp("a", 0), RecordsToDelete.beforeOffset(99))));
        call("deleteRecords, options", () -> admin.deleteRecords(Map.of(tp("a", 1), RecordsToDelete.beforeOffset(-1)),
            new DeleteRecordsOptions()));
        until(() -> replicasOnDisk() == 3);
        call("describeLogDirs", () -> admin.describeLogDirs(List.of(node)).descriptions().get(node).get().values().stream()
            .map(LogDirDescription::error).toList());
        call("describeLogDirs, options", () -> admin.describeLogDirs(List.of(99), new DescribeLogDirsOptions().timeoutMs(100)));
    }

    private long replicasOnDisk() throws Exception {
        return admin.describeLogDirs(List.of(node)).descriptions().get(node).get().values().stream()
            .flatMap(directory -> directory.replicaInfos().keySet().stream()).filter(tp -> tp.topic().equals("a")).count();
    }

    // --- configs -------------------------------------------------------------------------------------

    private static ConfigResource resource(ConfigResource.Type type, String name) {
        return new ConfigResource(type, name);
    }

    private static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    private AlterConfigsResult alter(ConfigResource resource, AlterConfigOp... ops) {
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(ops)));
    }

    private void configs() throws Exception {
        ConfigResource a = resource(ConfigResource.Type.TOPIC, "a");
        ConfigResource own = resource(ConfigResource.Type.BROKER, broker);
        ConfigResource all = resource(ConfigResource.Type.BROKER, "");
        ConfigResource loggers = resource(ConfigResource.Type.BROKER_LOGGER, broker);
        ConfigResource group = resource(ConfigResource.Type.GROUP, "g");
        ConfigResource metrics = resource(ConfigResource.Type.CLIENT_METRICS, "m");
        AlterConfigOp.OpType set = AlterConfigOp.OpType.SET;
        AlterConfigOp.OpType delete = AlterConfigOp.OpType.DELETE;
        call("incrementalAlterConfigs of a topic", () -> alter(a, op("retention.ms", "5000", set)));
        call("incrementalAlterConfigs, append", () -> alter(a, op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND)));
        call("incrementalAlterConfigs, subtract", () -> alter(a, op("cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT)));
        call("incrementalAlterConfigs, delete", () -> alter(a, op("retention.ms", null, delete)));
        call("incrementalAlterConfigs, bad value", () -> alter(a, op("retention.ms", "x", set)));
        call("incrementalAlterConfigs, bad key", () -> alter(a, op("no.such", "x", set)));
        call("incrementalAlterConfigs of no topic", () -> alter(resource(ConfigResource.Type.TOPIC, "none"), op("retention.ms", "1", set)));
        call("incrementalAlterConfigs of the broker", () -> alter(own, op("log.cleaner.threads", "2", set)));
        call("incrementalAlterConfigs of all brokers", () -> alter(all, op("log.cleaner.threads", "2", set)));
        call("incrementalAlterConfigs of a static key", () -> alter(own, op("node.id", "2", set)));
        call("incrementalAlterConfigs of the root logger", () -> alter(loggers, op("root", "INFO", set)));
        call("incrementalAlterConfigs of no logger", () -> alter(loggers, op("no.such", "INFO", set)));
        call("incrementalAlterConfigs to no level", () -> alter(loggers, op("root", "LOUD", set)));
        call("incrementalAlterConfigs of client metrics", () -> alter(metrics, op("interval.ms", "1000", set)));
        call("incrementalAlterConfigs of a group", () -> alter(group, op("consumer.session.timeout.ms", "50000", set)));
        call("incrementalAlterConfigs, options", () -> admin.incrementalAlterConfigs(Map.of(a, List.of(op("retention.ms", "5000", set))),
            new AlterConfigsOptions().validateOnly(true)));
        until(() -> admin.listConfigResources().all().get().contains(group)); // the last change: all others are seen as well
        call("describeConfigs of a topic", () -> admin.describeConfigs(List.of(a)));
        call("describeConfigs of no topic", () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.TOPIC, "none"))));
        call("describeConfigs of a topic, options", () -> admin.describeConfigs(List.of(a),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).values().get(a).get().entries().stream()
            .map(e -> e.name() + "=" + e.value() + e.synonyms() + (e.documentation() == null ? "" : " documented")).toList());
        call("describeConfigs of the broker", () -> admin.describeConfigs(List.of(own)).values().get(own).get().entries().stream()
            .map(e -> e.name() + " " + e.type() + (e.isReadOnly() ? " read-only" : "") + (e.isSensitive() ? " sensitive" : "")).toList());
        call("describeConfigs of the broker, options", () -> admin.describeConfigs(List.of(own),
            new DescribeConfigsOptions().includeDocumentation(true)).values().get(own).get().entries().stream()
            .filter(e -> e.documentation() == null || e.documentation().isEmpty()).map(ConfigEntry::name).toList());
        call("describeConfigs of all brokers", () -> admin.describeConfigs(List.of(all)));
        call("describeConfigs of another broker",
            () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.BROKER, "99")), new DescribeConfigsOptions().timeoutMs(100)));
        call("describeConfigs of loggers, the root",
            () -> admin.describeConfigs(List.of(loggers)).values().get(loggers).get().get("root"));
        call("describeConfigs of loggers", () -> admin.describeConfigs(List.of(loggers)).values().get(loggers).get().entries().stream()
            .map(ConfigEntry::name).toList());
        call("describeConfigs of a group", () -> admin.describeConfigs(List.of(group)));
        call("describeConfigs of client metrics", () -> admin.describeConfigs(List.of(metrics)));
        call("listConfigResources", () -> admin.listConfigResources().all());
        call("listConfigResources, options", () -> admin.listConfigResources(Set.of(ConfigResource.Type.BROKER_LOGGER),
            new ListConfigResourcesOptions()).all());
        call("listClientMetricsResources", () -> admin.listClientMetricsResources().all());
        call("listClientMetricsResources, options", () -> admin.listClientMetricsResources(new ListClientMetricsResourcesOptions()).all());
    }

    // --- groups --------------------------------------------------------------------------------------

    private static Map<TopicPartition, OffsetAndMetadata> offsets(long offset) {
        return Map.of(tp("a", 0), new OffsetAndMetadata(offset, "note"));
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, String protocol) {
        Properties properties = new Properties();
        properties.putAll(config);
        properties.putAll(Map.of("group.id", group, "group.protocol", protocol, "client.id", "member", "group.instance.id", "instance",
            "enable.auto.commit", "false"));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("a"));
        while (consumer.assignment().size() < 3) {
            consumer.poll(Duration.ofMillis(50));
        }
        return consumer;
    }

    private void groups() throws Exception {
        call("alterConsumerGroupOffsets", () -> admin.alterConsumerGroupOffsets("simple", offsets(3)));
        call("alterConsumerGroupOffsets of no topic", () -> admin.alterConsumerGroupOffsets("simple",
            Map.of(tp("none", 0), new OffsetAndMetadata(1))));
        call("alterConsumerGroupOffsets, options", () -> admin.alterConsumerGroupOffsets("gone", offsets(1),
            new AlterConsumerGroupOffsetsOptions()));
        call("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets("simple"));
        call("listConsumerGroupOffsets of no group", () -> admin.listConsumerGroupOffsets("none"));
        call("listConsumerGroupOffsets, options", () -> admin.listConsumerGroupOffsets("simple",
            new ListConsumerGroupOffsetsOptions().requireStable(true)));
        call("listConsumerGroupOffsets of several", () -> admin.listConsumerGroupOffsets(Map.of(
            "simple", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(tp("a", 0), tp("a", 1))),
            "gone", new ListConsumerGroupOffsetsSpec())).all());
        call("listConsumerGroupOffsets of several, options", () -> admin.listConsumerGroupOffsets(
            Map.of("none", new ListConsumerGroupOffsetsSpec()), new ListConsumerGroupOffsetsOptions()).all());
        KafkaConsumer<byte[], byte[]> classic = consumer("classic", "classic");
        KafkaConsumer<byte[], byte[]> next = consumer("next", "consumer");
        until(() -> admin.describeConsumerGroups(List.of("classic", "next")).all().get().values().stream()
            .allMatch(group -> group.groupState() == GroupState.STABLE));
        call("describeConsumerGroups", () -> admin.describeConsumerGroups(List.of("simple", "none")));
        call("describeConsumerGroups of a classic group", () -> admin.describeConsumerGroups(List.of("classic")));
        call("describeConsumerGroups of a consumer group", () -> admin.describeConsumerGroups(List.of("next")));
        call("describeConsumerGroups, options", () -> admin.describeConsumerGroups(List.of("simple"),
            new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)));
        call("describeClassicGroups", () -> admin.describeClassicGroups(List.of("classic", "none")));
        call("describeClassicGroups of a consumer group", () -> admin.describeClassicGroups(List.of("next")));
        call("describeClassicGroups, options", () -> admin.describeClassicGroups(List.of("simple"),
            new DescribeClassicGroupsOptions().includeAuthorizedOperations(true)));
        call("listConsumerGroups", () -> admin.listConsumerGroups().all());
        call("listConsumerGroups, options", () -> admin.listConsumerGroups(new ListConsumerGroupsOptions()
            .inGroupStates(Set.of(GroupState.STABLE)).withTypes(Set.of(GroupType.CONSUMER))).all());
        call("listGroups", () -> admin.listGroups().all());
        call("listGroups, options", () -> admin.listGroups(ListGroupsOptions.forConsumerGroups()).all());
        call("listGroups, states", () -> admin.listGroups(new ListGroupsOptions().inGroupStates(Set.of(GroupState.EMPTY))).all());
        call("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets("simple", Set.of(tp("a", 0))));
        call("deleteConsumerGroupOffsets of a subscribed topic", () -> admin.deleteConsumerGroupOffsets("next", Set.of(tp("a", 0)))
            .partitionResult(tp("a", 0)));
        call("deleteConsumerGroupOffsets, options", () -> admin.deleteConsumerGroupOffsets("none", Set.of(tp("a", 0)),
            new DeleteConsumerGroupOffsetsOptions()).partitionResult(tp("a", 0)));
        call("alterConsumerGroupOffsets of a group with members", () -> admin.alterConsumerGroupOffsets("classic", offsets(1)));
        call("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of("gone", "none")));
        call("deleteConsumerGroups with members, options", () -> admin.deleteConsumerGroups(List.of("classic", "next"),
            new DeleteConsumerGroupsOptions()));
        call("removeMembersFromConsumerGroup", () -> admin.removeMembersFromConsumerGroup("classic",
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("instance")))).all());
        call("removeMembersFromConsumerGroup of nobody", () -> admin.removeMembersFromConsumerGroup("next",
            new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))).all());
        call("removeMembersFromConsumerGroup of all", () -> admin.removeMembersFromConsumerGroup("next",
            new RemoveMembersFromConsumerGroupOptions()).all());
        classic.close(org.apache.kafka.clients.consumer.CloseOptions.timeout(Duration.ZERO));
        next.close(org.apache.kafka.clients.consumer.CloseOptions.timeout(Duration.ZERO));
    }

    private void otherGroups() {
        call("describeShareGroups", () -> admin.describeShareGroups(List.of("none")));
        call("describeShareGroups, options", () -> admin.describeShareGroups(List.of("none"), new DescribeShareGroupsOptions()));
        call("alterShareGroupOffsets", () -> admin.alterShareGroupOffsets("share", Map.of(tp("none", 0), 1L)).all());
        call("alterShareGroupOffsets, options", () -> admin.alterShareGroupOffsets("share", Map.of(tp("none", 0), 1L),
            new AlterShareGroupOffsetsOptions()).all());
        call("listShareGroupOffsets", () -> admin.listShareGroupOffsets(Map.of("none", new ListShareGroupOffsetsSpec())).all());
        call("listShareGroupOffsets, options", () -> admin.listShareGroupOffsets(Map.of("none", new ListShareGroupOffsetsSpec()),
            new ListShareGroupOffsetsOptions()).all());
        call("deleteShareGroupOffsets", () -> admin.deleteShareGroupOffsets("none", Set.of("a")).all());
        call("deleteShareGroupOffsets, options", () -> admin.deleteShareGroupOffsets("none", Set.of("a"),
            new DeleteShareGroupOffsetsOptions()).all());
        call("deleteShareGroups", () -> admin.deleteShareGroups(List.of("none")));
        call("deleteShareGroups, options", () -> admin.deleteShareGroups(List.of("none"), new DeleteShareGroupsOptions()));
        call("describeStreamsGroups", () -> admin.describeStreamsGroups(List.of("none")));
        call("describeStreamsGroups, options", () -> admin.describeStreamsGroups(List.of("none"), new DescribeStreamsGroupsOptions()));
        call("alterStreamsGroupOffsets", () -> admin.alterStreamsGroupOffsets("streams", offsets(1)));
        call("alterStreamsGroupOffsets, options", () -> admin.alterStreamsGroupOffsets("streams", offsets(1),
            new AlterStreamsGroupOffsetsOptions()));
        call("listStreamsGroupOffsets", () -> admin.listStreamsGroupOffsets(Map.of("streams", new ListStreamsGroupOffsetsSpec())).all());
        call("listStreamsGroupOffsets, options", () -> admin.listStreamsGroupOffsets(Map.of("none", new ListStreamsGroupOffsetsSpec()),
            new ListStreamsGroupOffsetsOptions()).all());
        call("deleteStreamsGroupOffsets", () -> admin.deleteStreamsGroupOffsets("streams", Set.of(tp("a", 0))).all());
        call("deleteStreamsGroupOffsets, options", () -> admin.deleteStreamsGroupOffsets("none", Set.of(tp("a", 0)),
            new DeleteStreamsGroupOffsetsOptions()).all());
        call("deleteStreamsGroups", () -> admin.deleteStreamsGroups(List.of("streams")));
        call("deleteStreamsGroups, options", () -> admin.deleteStreamsGroups(List.of("none"), new DeleteStreamsGroupsOptions()));
    }

    // --- transactions --------------------------------------------------------------------------------

    private void transactions() throws Exception {
        Properties properties = new Properties();
        properties.putAll(config);
        properties.put("transactional.id", "txn");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("a", 1, null, new byte[10])).get();
            call("describeProducers", () -> admin.describeProducers(List.of(tp("a", 1))).all());
            call("describeProducers of no partition, options", () -> admin.describeProducers(List.of(tp("a", 0), tp("a", 2)),
                new DescribeProducersOptions().brokerId(node)).all());
            call("describeTransactions", () -> admin.describeTransactions(List.of("txn")).all());
            call("describeTransactions, options", () -> admin.describeTransactions(List.of("none"), new DescribeTransactionsOptions()).all());
            call("listTransactions", () -> admin.listTransactions().all());
            call("listTransactions, options", () -> admin.listTransactions(new ListTransactionsOptions()
                .filterStates(List.of(TransactionState.ONGOING)).filterOnTransactionalIdPattern("t.*")).all());
            call("forceTerminateTransaction", () -> admin.forceTerminateTransaction("txn").result());
            call("forceTerminateTransaction, options",
                () -> admin.forceTerminateTransaction("none", new TerminateTransactionOptions()).result());
            call("abortTransaction", () -> admin.abortTransaction(new AbortTransactionSpec(tp("a", 2), 12345, (short) 0, 0)).all());
            call("abortTransaction, options", () -> admin.abortTransaction(new AbortTransactionSpec(tp("none", 0), 1, (short) 0, 0),
                new AbortTransactionOptions().timeoutMs(200)).all());
            call("fenceProducers", () -> admin.fenceProducers(List.of("txn")));
            call("fenceProducers, options", () -> admin.fenceProducers(List.of("other"), new FenceProducersOptions()));
        } catch (org.apache.kafka.common.KafkaException e) {
            System.err.println("the producer was fenced, as it should be: " + e);
        }
    }

    // --- replicas ------------------------------------------------------------------------------------

    private void replicas() throws Exception {
        String here = admin.describeLogDirs(List.of(node)).descriptions().get(node).get().keySet().iterator().next();
        TopicPartitionReplica replica = new TopicPartitionReplica("a", 0, node);
        call("electLeaders, preferred", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(tp("a", 0), tp("none", 0))).partitions());
        call("electLeaders, unclean", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(tp("a", 0))).partitions());
        call("electLeaders of all, options",
            () -> admin.electLeaders(ElectionType.PREFERRED, null, new ElectLeadersOptions()).partitions());
        call("listPartitionReassignments", () -> admin.listPartitionReassignments());
        call("listPartitionReassignments of some", () -> admin.listPartitionReassignments(Set.of(tp("a", 0))).reassignments());
        call("listPartitionReassignments of some, options", () -> admin.listPartitionReassignments(Set.of(tp("none", 0)),
            new ListPartitionReassignmentsOptions()).reassignments());
        call("listPartitionReassignments, options",
            () -> admin.listPartitionReassignments(new ListPartitionReassignmentsOptions()).reassignments());
        call("listPartitionReassignments of all", () -> admin.listPartitionReassignments(Optional.empty(),
            new ListPartitionReassignmentsOptions()).reassignments());
        call("alterPartitionReassignments", () -> admin.alterPartitionReassignments(Map.of(
            tp("a", 0), Optional.of(new NewPartitionReassignment(List.of(node))),
            tp("a", 1), Optional.of(new NewPartitionReassignment(List.of(99))),
            tp("a", 2), Optional.empty(),
            tp("none", 0), Optional.empty())).values());
        call("alterPartitionReassignments, options", () -> admin.alterPartitionReassignments(
            Map.of(tp("a", 0), Optional.of(new NewPartitionReassignment(List.of(node, 99)))),
            new AlterPartitionReassignmentsOptions().allowReplicationFactorChange(false)).values());
        call("alterReplicaLogDirs", () -> admin.alterReplicaLogDirs(Map.of(replica, here)));
        call("alterReplicaLogDirs to no directory", () -> admin.alterReplicaLogDirs(Map.of(replica, "/no/such")));
        call("alterReplicaLogDirs of no partition, options", () -> admin.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica("none", 0, node), here), new AlterReplicaLogDirsOptions()));
        call("describeReplicaLogDirs", () -> admin.describeReplicaLogDirs(List.of(replica)).all().get().get(replica)
            .getCurrentReplicaLogDir().equals(here));
        call("describeReplicaLogDirs, options", () -> admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica("none", 0, node)),
            new DescribeReplicaLogDirsOptions()).all());
    }

    // --- security ------------------------------------------------------------------------------------

    private void security() {
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "a", PatternType.LITERAL),
            new AccessControlEntry("User:u", "*", AclOperation.READ, AclPermissionType.ALLOW));
        call("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY));
        call("describeAcls, options", () -> admin.describeAcls(acl.toFilter(), new DescribeAclsOptions()));
        call("createAcls", () -> admin.createAcls(List.of(acl)).values());
        call("createAcls, options", () -> admin.createAcls(List.of(acl), new CreateAclsOptions()).values());
        call("deleteAcls", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)).values());
        call("deleteAcls, options", () -> admin.deleteAcls(List.of(acl.toFilter()), new DeleteAclsOptions()).values());
        call("createDelegationToken", () -> admin.createDelegationToken());
        call("createDelegationToken, options", () -> admin.createDelegationToken(new CreateDelegationTokenOptions().maxLifetimeMs(1)));
        call("renewDelegationToken", () -> admin.renewDelegationToken(new byte[] {1}));
        call("renewDelegationToken, options", () -> admin.renewDelegationToken(new byte[] {1}, new RenewDelegationTokenOptions()));
        call("expireDelegationToken", () -> admin.expireDelegationToken(new byte[] {1}));
        call("expireDelegationToken, options", () -> admin.expireDelegationToken(new byte[] {1}, new ExpireDelegationTokenOptions()));
        call("describeDelegationToken", () -> admin.describeDelegationToken());
        call("describeDelegationToken, options", () -> admin.describeDelegationToken(new DescribeDelegationTokenOptions().owners(List.of())));
        call("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()));
        call("describeClientQuotas of a user, options", () -> admin.describeClientQuotas(
            ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, "u"))),
            new DescribeClientQuotasOptions()));
        call("describeClientQuotas of an unknown kind", () -> admin.describeClientQuotas(
            ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntityType("no-such")))));
        ClientQuotaAlteration quota = new ClientQuotaAlteration(new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "u")),
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6)));
        call("alterClientQuotas", () -> admin.alterClientQuotas(List.of(quota)).values());
        call("alterClientQuotas, options", () -> admin.alterClientQuotas(List.of(quota),
            new AlterClientQuotasOptions().validateOnly(true)).values());
        call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all());
        call("describeUserScramCredentials of a user", () -> admin.describeUserScramCredentials(List.of("u")).all());
        call("describeUserScramCredentials of a user, options", () -> admin.describeUserScramCredentials(List.of("u"),
            new DescribeUserScramCredentialsOptions()).description("u"));
        UserScramCredentialAlteration credential = new UserScramCredentialUpsertion("u",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret");
        call("alterUserScramCredentials", () -> admin.alterUserScramCredentials(List.of(credential)).values());
        call("alterUserScramCredentials, options", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256)),
            new AlterUserScramCredentialsOptions()).values());
    }

    // --- cluster -------------------------------------------------------------------------------------

    private void cluster() {
        call("describeCluster", () -> admin.describeCluster());
        call("describeCluster, options", () -> admin.describeCluster(new DescribeClusterOptions()
            .includeAuthorizedOperations(true).includeFencedBrokers(true)));
        call("describeFeatures", () -> admin.describeFeatures());
        call("describeFeatures, options", () -> admin.describeFeatures(new DescribeFeaturesOptions().nodeId(node)));
        FeatureUpdate unknown = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
        call("updateFeatures", () -> admin.updateFeatures(Map.of("no.such", unknown), new UpdateFeaturesOptions()).values());
        call("updateFeatures without options",
            () -> admin.updateFeatures(Map.of("group.version", new FeatureUpdate((short) 99, FeatureUpdate.UpgradeType.UPGRADE))).values());
        call("updateFeatures, options", () -> admin.updateFeatures(
            Map.of("group.version", new FeatureUpdate((short) 0, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).values());
        call("describeMetadataQuorum", () -> admin.describeMetadataQuorum());
        call("describeMetadataQuorum, options", () -> admin.describeMetadataQuorum(new DescribeMetadataQuorumOptions()));
        call("unregisterBroker", () -> admin.unregisterBroker(99).all());
        call("unregisterBroker, options", () -> admin.unregisterBroker(99, new UnregisterBrokerOptions()).all());
        Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "127.0.0.1", 1));
        call("addRaftVoter", () -> admin.addRaftVoter(node, new Uuid(1, 2), endpoints).all());
        call("addRaftVoter, options", () -> admin.addRaftVoter(node, new Uuid(1, 2), endpoints, new AddRaftVoterOptions()).all());
        call("removeRaftVoter", () -> admin.removeRaftVoter(99, new Uuid(1, 2)).all());
        call("removeRaftVoter, options", () -> admin.removeRaftVoter(99, new Uuid(1, 2), new RemoveRaftVoterOptions()).all());
    }

    // --- the client itself ---------------------------------------------------------------------------

    private void client() {
        call("clientInstanceId", () -> admin.clientInstanceId(Duration.ofSeconds(2)));
        call("metrics", () -> admin.metrics().isEmpty());
        KafkaMetric metric = (KafkaMetric) admin.metrics().values().iterator().next();
        call("registerMetricForSubscription", () -> {
            admin.registerMetricForSubscription(metric);
            return "done";
        });
        call("unregisterMetricFromSubscription", () -> {
            admin.unregisterMetricFromSubscription(metric);
            return "done";
        });
        call("create from properties, close", () -> {
            Properties properties = new Properties();
            properties.putAll(config);
            try (Admin other = recorded(Admin.create(properties))) {
                return other.listTopics().names();
            }
        });
        call("close within a time", () -> {
            admin.close(Duration.ofSeconds(5));
            return "done";
        });
    }
}
