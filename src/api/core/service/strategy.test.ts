import t from "tap";
import type { Service, ServiceSpec } from "./schema.ts";
import { dropTypeDependentFields, syncLinkedFields } from "./strategy.ts";

const allocated: ServiceSpec = { type: "ClusterIP", clusterIP: "10.0.0.5", clusterIPs: ["10.0.0.5"] };
const linked = (next: ServiceSpec, previous?: ServiceSpec) =>
  syncLinkedFields({ spec: next }, previous && { spec: previous }).spec;

t.test("syncLinkedFields() keeps clusterIP and clusterIPs consistent, whichever the client sets", async (t) => {
  const cases: readonly (readonly [why: string, next: ServiceSpec, ip: string, ips: readonly string[]])[] = [
    ["left out", {}, "10.0.0.5", ["10.0.0.5"]],
    ["the singular one kept", { clusterIP: "10.0.0.5" }, "10.0.0.5", ["10.0.0.5"]],
    ["the singular one changed", { clusterIP: "10.0.0.6", clusterIPs: ["10.0.0.5"] }, "10.0.0.6", ["10.0.0.6"]],
    ["the singular one without the plural", { clusterIP: "None" }, "None", []],
    ["the plural one changed", { clusterIP: "10.0.0.5", clusterIPs: ["10.0.0.6"] }, "10.0.0.5", ["10.0.0.6"]],
  ];
  for (const [why, next, ip, ips] of cases) {
    const { clusterIP, clusterIPs = [] } = linked({ type: "ClusterIP", ...next }, allocated) ?? {};
    t.same([clusterIP, clusterIPs], [ip, ips], why);
  }
  t.same(linked({ clusterIP: "None" })?.clusterIPs, ["None"], "a new service");
  const cleared = linked({ type: "ExternalName", clusterIP: "", clusterIPs: ["10.0.0.5"] }, allocated);
  t.same(cleared?.clusterIPs, [], "cleared with the type that needed it");
});

t.test("syncLinkedFields() keeps node ports by the names of ports", async (t) => {
  const port = (name: string, nodePort?: number) => ({ name, port: 80, ...(nodePort && { nodePort }) });
  const old: ServiceSpec = { type: "NodePort", ports: [port("a", 30_001), port("b", 30_002)] };
  const ports = (next: ServiceSpec) => linked(next, old)?.ports?.map(({ nodePort }) => nodePort);
  t.same(ports({ type: "NodePort", ports: [port("b"), port("c"), port("a")] }), [30_002, undefined, 30_001]);
  t.same(
    ports({ type: "NodePort", ports: [port("a"), port("b", 30_001)] }),
    [undefined, 30_001],
    "used by another port",
  );
  t.same(ports({ type: "ClusterIP", ports: [port("a")] }), [undefined]);
  const none = { type: "LoadBalancer", allocateLoadBalancerNodePorts: false } as const;
  t.same(ports({ ...none, ports: [port("a")] }), [undefined], "a load balancer without node ports");
});

t.test(
  "dropTypeDependentFields() drops unused fields of the previous type, unless the client changed them",
  async (t) => {
    const old: Service = {
      spec: {
        type: "LoadBalancer",
        clusterIP: "10.0.0.5",
        clusterIPs: ["10.0.0.5"],
        ipFamilies: ["IPv4"],
        ipFamilyPolicy: "SingleStack",
        ports: [{ port: 80, nodePort: 30_001 }],
        externalTrafficPolicy: "Local",
        internalTrafficPolicy: "Cluster",
        healthCheckNodePort: 30_002,
        allocateLoadBalancerNodePorts: true,
        loadBalancerClass: "a.b/c",
        sessionAffinity: "None",
      },
      status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } },
    };
    const changed = (spec: ServiceSpec): Service =>
      dropTypeDependentFields({ ...old, spec: { ...old.spec, ...spec } }, old);
    const named = changed({ type: "ExternalName", externalName: "a.b" });
    t.same(named.spec, { type: "ExternalName", externalName: "a.b", ports: [{ port: 80 }], sessionAffinity: "None" });
    t.same(named.status, {});
    const inside = changed({ type: "ClusterIP" }).spec;
    t.match(inside, { clusterIP: "10.0.0.5", internalTrafficPolicy: "Cluster", ports: [{ nodePort: undefined }] });
    t.equal(inside?.healthCheckNodePort, undefined);
    t.equal(inside?.loadBalancerClass, undefined);
    const requested = changed({
      type: "ClusterIP",
      healthCheckNodePort: 30_003,
      ports: [{ port: 80, nodePort: 30_009 }],
    });
    t.match(requested.spec, { healthCheckNodePort: 30_003, ports: [{ nodePort: 30_009 }] }, "left to validation");
    t.same(changed({}), old);
  },
);
