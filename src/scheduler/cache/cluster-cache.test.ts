import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { ClusterCache } from "./cluster-cache.ts";
import { compileSelector } from "./label-match.ts";
import { PodInfo } from "./pod-info.ts";
import { spreadMatcher } from "./pod-match-index.ts";

const NODES = ["a", "b", "c"];
const APPS = ["web", "db"];

function createCache(): ClusterCache {
  const cache = new ClusterCache({ labelsOf: () => undefined, all: () => [] });
  for (const name of NODES) {
    cache.putNode({ metadata: { name, labels: { zone: name } }, status: { allocatable: { cpu: "8", pods: "10" } } });
  }
  return cache;
}

const away = (app: string) => ({
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app } }, topologyKey: "zone" }],
  },
});

t.test("sums and indexes stay equal to those of a new cache, whatever comes and goes", async (t) => {
  const random = seededRandom(7);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random.fraction() * items.length)]!;
  const cache = createCache();
  const pods = new Map<string, Pod>();
  const matchers = APPS.map((app) => spreadMatcher("default", compileSelector({ matchLabels: { app } })));
  for (let step = 0; step < 500; step++) {
    const uid = `pod-${Math.floor(random.fraction() * 30)}`;
    if (random.fraction() < 0.3) {
      cache.deletePod(uid);
      pods.delete(uid);
    } else {
      const app = pick(APPS);
      const pod: Pod = {
        metadata: { name: uid, namespace: "default", uid, labels: { app } },
        spec: {
          nodeName: pick(NODES),
          containers: [{ name: "c", image: "i", resources: { requests: { cpu: pick(["1", "200m"]) } } }],
          ...(random.fraction() < 0.5 ? { affinity: away(app) } : {}),
        },
      };
      if (random.fraction() < 0.5) cache.assume(new PodInfo(pod), pod.spec?.nodeName ?? "");
      else cache.putPod(pod);
      pods.set(uid, pod);
    }
    // The counts of a selector begin with its first use, when there are pods already.
    for (const matcher of step > 100 ? matchers : []) cache.matches.counts(matcher);
  }
  const fresh = createCache();
  for (const pod of pods.values()) fresh.putPod(pod);
  for (const name of NODES) {
    const [kept, expected] = [cache.node(name)!, fresh.node(name)!];
    t.equal(kept.requested.milliCpu, expected.requested.milliCpu, name);
    t.same([...kept.pods.keys()].sort(), [...expected.pods.keys()].sort(), name);
  }
  const sorted = (counts: ReadonlyMap<string, number>) => [...counts].sort();
  for (const matcher of matchers) t.same(sorted(cache.matches.counts(matcher)), sorted(fresh.matches.counts(matcher)));
  const terms = (from: ClusterCache) =>
    [...from.terms.entries("requiredAntiAffinity")].map(({ term, counts }) => [term.key, sorted(counts)]).sort();
  t.same(terms(cache), terms(fresh));
});

t.test("nodes are tried zone by zone in turn, and only while they exist", async (t) => {
  const cache = new ClusterCache({ labelsOf: () => undefined, all: () => [] });
  for (const [name, zone] of Object.entries({ a1: "a", a2: "a", b1: "b", c1: "c", a3: "a" })) {
    cache.putNode({ metadata: { name, labels: { "topology.kubernetes.io/zone": zone } } });
  }
  t.same(
    cache.nodes().map(({ name }) => name),
    ["a1", "b1", "c1", "a2", "a3"],
  );
  cache.putPod({ metadata: { name: "p", uid: "p" }, spec: { nodeName: "gone", containers: [] } });
  cache.deleteNode("a1");
  t.same(
    cache.nodes().map(({ name }) => name),
    ["a2", "b1", "c1", "a3"],
  );
  t.equal(cache.node("gone"), undefined, "a pod names a node that does not exist");
});

t.test("an image counts with the size on the node that had it first", async (t) => {
  const cache = createCache();
  const withImage = (name: string, sizeBytes: number) =>
    cache.putNode({ metadata: { name }, status: { images: [{ names: ["web:1"], sizeBytes }] } });
  withImage("a", 100);
  withImage("b", 200);
  t.match(cache.image("web:1"), { size: 100, nodes: 2 });
  cache.deleteNode("a");
  cache.deleteNode("b");
  t.equal(cache.image("web:1"), undefined);
});
