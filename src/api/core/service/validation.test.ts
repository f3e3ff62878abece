import t from "tap";
import type { Service, ServiceSpec } from "./schema.ts";
import { validateService, validateServiceUpdate } from "./validation.ts";

const spec: ServiceSpec = {
  type: "LoadBalancer",
  ports: [{ port: 10250, protocol: "TCP", targetPort: 10250 }],
  sessionAffinity: "None",
  externalTrafficPolicy: "Cluster",
  internalTrafficPolicy: "Cluster",
  allocateLoadBalancerNodePorts: true,
};
const service = (changes: Partial<ServiceSpec> = {}): Service => ({ metadata: {}, spec: { ...spec, ...changes } });
const fields = (errors: ReturnType<typeof validateService>): readonly string[] =>
  errors.map(({ type, field }) => `${type.replace("FieldValue", "")} ${field}`);

t.test("validateService() accepts the kubelet's port", async (t) => {
  t.same(fields(validateService(service())), []);
});

t.test("validateService() reports errors in Kubernetes' order", async (t) => {
  const port = { port: 1, protocol: "TCP", targetPort: 1, nodePort: 30_000 } as const;
  const ports = [
    { ...port, name: "a" },
    { ...port, name: "b" },
  ];
  const changes = { type: "ClusterIP", ports, externalIPs: ["127.0.0.1"], selector: { "a b": "c" } } as const;
  t.same(fields(validateService(service(changes))), [
    "Invalid spec.selector",
    "Invalid spec.externalIPs[0]",
    "Forbidden spec.ports[0].nodePort",
    "Forbidden spec.ports[1].nodePort",
    "Duplicate spec.ports[1].nodePort",
    "Duplicate spec.ports[1]",
    "Forbidden spec.allocateLoadBalancerNodePorts",
  ]);
  t.same(fields(validateService(service({ type: "Bad" as "ClusterIP", ports: [] }))).slice(0, 2), [
    "Required spec.ports",
    "NotSupported spec.type",
  ]);
});

t.test("an update reports the errors of the load balancer's class a second time", async (t) => {
  const previous = service({ loadBalancerClass: "a" });
  const changed = validateServiceUpdate(service({ loadBalancerClass: "a b" }), previous);
  t.same(fields(changed), ["Invalid spec.loadBalancerClass", "Invalid spec.loadBalancerClass"]);
});
