import t from "tap";
import { createSchedulerFixture } from "../../testing/scheduler/scheduler-fixture.ts";
import { parseConfiguration } from "./load-configuration.ts";

const parse = (members: object) =>
  parseConfiguration({
    apiVersion: "kubescheduler.config.k8s.io/v1",
    kind: "KubeSchedulerConfiguration",
    ...members,
  });

t.test("an empty configuration has Kubernetes' defaults", async (t) => {
  t.match(parse({}).scheduler, {
    profiles: [{ schedulerName: "default-scheduler" }],
    extenders: [],
    percentageOfNodesToScore: 0,
    podInitialBackoffSeconds: 1,
    podMaxBackoffSeconds: 10,
  });
});

t.test("profiles, extenders and leader election are read", async (t) => {
  const { scheduler, leaderElection, connection } = parse({
    leaderElection: { leaderElect: false, resourceName: "mine" },
    clientConnection: { kubeconfig: "/kc", qps: 5.5 },
    profiles: [
      { pluginConfig: [{ name: "InterPodAffinity", args: { hardPodAffinityWeight: 0 } }], percentageOfNodesToScore: 7 },
    ],
    extenders: [
      { urlPrefix: "http://h/x", filterVerb: "filter", httpTimeout: "250ms", managedResources: [{ name: "a.b/c" }] },
      { urlPrefix: "https://h/y", prioritizeVerb: "score", weight: 3 },
    ],
  });
  t.match(scheduler.profiles[0], {
    schedulerName: "default-scheduler",
    percentageOfNodesToScore: 7,
    pluginConfig: { InterPodAffinity: { hardPodAffinityWeight: 0 } },
  });
  t.match(scheduler.extenders, [
    { httpTimeoutMs: 250, managedResources: [{ name: "a.b/c" }] },
    { httpTimeoutMs: 5000 },
  ]);
  t.same(leaderElection, { leaderElect: false, resourceName: "mine" });
  t.same(connection, { kubeconfig: "/kc", qps: 5.5 });
});

t.test("plugins are enabled and disabled at all points or at single ones, with weights", async (t) => {
  const nodes = ["a", "b"].map((name) => ({
    metadata: { name },
    spec: { taints: [{ key: "k", effect: "NoSchedule" as const }] },
    status: { allocatable: { cpu: "2", memory: "2Gi", pods: "10" } },
  }));
  const pod = {
    metadata: { name: "p", namespace: "default", uid: "p" },
    spec: { schedulerName: "a", containers: [{ name: "c", image: "i", resources: { requests: { cpu: "1" } } }] },
  };
  const profiles = [
    {
      schedulerName: "a",
      plugins: {
        multiPoint: { enabled: [{ name: "ImageLocality", weight: 4 }], disabled: [{ name: "InterPodAffinity" }] },
        filter: { disabled: [{ name: "TaintToleration" }] },
        score: {
          disabled: [{ name: "TaintToleration" }, { name: "NodeResourcesFit" }],
          enabled: [{ name: "NodeResourcesFit", weight: 10 }],
        },
      },
    },
  ];
  const { node, scores } = await createSchedulerFixture({ nodes, config: { profiles } }).decide(pod);
  t.ok(node, "taints are not filtered");
  t.same(Object.keys(scores).sort(), ["ImageLocality", "NodeResourcesBalancedAllocation", "NodeResourcesFit"]);
  t.equal((scores.NodeResourcesFit?.[0] ?? 0) % 10, 0);
});
