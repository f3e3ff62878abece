/** Valid objects of many items: they pass validation, so that the steps after it meet them, too. */
import type { HostileRequest } from "./hostile-requests.ts";

const PODS = "/api/v1/namespaces/default/pods";

function many<T>(count: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function members(count: number, make: (index: number) => readonly [string, unknown]): object {
  return Object.fromEntries(many(count, make));
}

const container = (index: number, more: object = {}) => ({ name: `c${index}`, image: "i", ...more });
const label = (index: number) => ({ key: `k${index}`, operator: "In", values: ["v"] });

/** Each is a dry run, so that the later ones do not meet the objects. */
export function validObjects(): readonly HostileRequest[] {
  return [...podParts(), ...networking(), ...access(), ...others()];
}

function request(what: string, path: string, apiVersion: string, kind: string, rest: object): HostileRequest {
  const { metadata = {}, ...content } = rest as { readonly metadata?: object };
  const body = JSON.stringify({ apiVersion, kind, metadata: { name: "valid", ...metadata }, ...content });
  return { what: `valid ${kind} of ${what}`, line: `POST ${path}?dryRun=All`, body };
}

function* podParts(): Generator<HostileRequest> {
  const pod = (what: string, spec: object, metadata: object = {}) =>
    request(what, PODS, "v1", "Pod", { metadata, spec: { containers: [container(0)], ...spec } });
  const of = (what: string, more: object) => pod(what, { containers: [container(0, more)] });
  yield of("12,000 equal ports", { ports: many(12_000, () => ({ containerPort: 1 })) });
  yield of("10,000 host ports", { ports: many(10_000, (i) => ({ containerPort: 1, hostPort: i + 1 })) });
  yield of("10,000 variables", { env: many(10_000, (i) => ({ name: `A${i}`, value: "b" })) });
  yield of("10,000 equal variables", { env: many(10_000, () => ({ name: "A", value: "$(A)" })) });
  yield of("8,000 sources of variables", { envFrom: many(8000, (i) => ({ configMapRef: { name: `m${i}` } })) });
  yield pod("12,000 mounts", {
    volumes: [{ name: "v", emptyDir: {} }],
    containers: [container(0, { volumeMounts: many(12_000, (i) => ({ name: "v", mountPath: `/m${i}` })) })],
  });
  yield pod("5,000 volumes and mounts", {
    volumes: many(5000, (i) => ({ name: `v${i}`, emptyDir: {} })),
    containers: [container(0, { volumeMounts: many(5000, (i) => ({ name: `v${i}`, mountPath: `/m${i}` })) })],
  });
  yield pod("4,000 containers and mounts", {
    volumes: many(2000, (i) => ({ name: `v${i}`, emptyDir: {} })),
    containers: many(4000, (i) => container(i, { volumeMounts: [{ name: `v${i % 2000}`, mountPath: "/m" }] })),
  });
  yield pod("8,000 containers", { containers: many(8000, (i) => container(i)) });
  yield pod("8,000 init containers", { initContainers: many(8000, (i) => container(i + 1)) });
  const resource = (i: number) => [`example.com/r${i}`, "1"] as const;
  yield of("10,000 resources", { resources: { limits: members(10_000, resource) } });
  yield pod("5,000 containers with resources", {
    containers: many(5000, (i) => container(i, { resources: { limits: { [`example.com/r${i}`]: "1" } } })),
    tolerations: many(3000, (i) => ({ key: `example.com/t${i}`, operator: "Exists" })),
  });
  const items = many(400, (i) => ({ key: "k", path: `p${i}` }));
  const source = (i: number) => ({ secret: { name: `s${i}` } });
  yield pod("8,000 sources of a volume", {
    volumes: [{ name: "v", projected: { sources: [{ configMap: { name: "m", items } }, ...many(8000, source)] } }],
  });
  const long = many(300, (i) => ({ key: "k", path: `${"p".repeat(4000)}${i}` }));
  yield pod("300 long paths", { volumes: [{ name: "v", configMap: { name: "m", items: long } }] });
  yield pod("12,000 tolerations", {
    tolerations: many(12_000, (i) => ({ key: `k${i}`, operator: "Exists", effect: "NoSchedule" })),
  });
  const term = (i: number) => ({ topologyKey: `k${i}`, labelSelector: { matchLabels: { a: "b" } } });
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: many(6000, term) };
  yield pod("6,000 affinity terms", { affinity: { podAntiAffinity } });
  const matchLabelKeys = { ...term(0), matchLabelKeys: many(10_000, (i) => `l${i}`) };
  const keyed = { requiredDuringSchedulingIgnoredDuringExecution: [matchLabelKeys] };
  const labels = members(10_000, (i) => [`l${i}`, "v"]);
  yield pod("10,000 label keys of an affinity term", { affinity: { podAffinity: keyed } }, { labels });
  const nodeSelectorTerms = many(5000, (i) => ({ matchExpressions: [label(i)] }));
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
  yield pod("5,000 node selector terms", { affinity: { nodeAffinity } });
  const spread = (i: number) => ({ ...term(i), maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" });
  yield pod("6,000 spread constraints", { topologySpreadConstraints: many(6000, spread) });
  yield pod("10,000 host aliases", { hostAliases: many(10_000, (i) => ({ ip: "192.0.2.1", hostnames: [`h${i}`] })) });
  yield pod("12,000 pull secrets", { imagePullSecrets: many(12_000, () => ({ name: "s" })) });
  yield pod("12,000 gates", { schedulingGates: many(12_000, (i) => ({ name: `example.com/g${i}` })) });
  const annotations = members(3500, (i) => [`container.apparmor.security.beta.kubernetes.io/c${i}`, "unconfined"]);
  yield pod("3,500 profiles", { containers: many(8000, (i) => container(i)) }, { annotations });
}

function* networking(): Generator<HostileRequest> {
  const network = (plural: string) => `/apis/networking.k8s.io/v1/namespaces/default/${plural}`;
  const ports = many(8000, (i) => ({ name: `p${i}`, port: i + 1 }));
  const selector = members(10_000, (i) => [`k${i}`, "v"]);
  yield request("8,000 ports", "/api/v1/namespaces/default/services", "v1", "Service", { spec: { ports } });
  yield request("10,000 selectors", "/api/v1/namespaces/default/services", "v1", "Service", {
    spec: { ports: [{ port: 1 }], selector },
  });
  const loadBalancerSourceRanges = many(12_000, () => "192.0.2.0/24");
  yield request("12,000 source ranges", "/api/v1/namespaces/default/services", "v1", "Service", {
    spec: { type: "LoadBalancer", ports: [{ port: 1 }], loadBalancerSourceRanges },
  });
  const endpoints = many(1000, (i) => ({
    addresses: many(10, (n) => `10.${i >> 8}.${i & 255}.${n}`),
    conditions: { ready: true },
    deprecatedTopology: { a: "b" },
  }));
  const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
  yield request("10,000 addresses", slices, "discovery.k8s.io/v1", "EndpointSlice", {
    addressType: "IPv4",
    endpoints,
    ports: many(100, (i) => ({ name: `p${i}`, port: i })),
  });
  const addresses = many(10_000, (i) => ({ ip: `10.0.${i >> 8}.${i & 255}` }));
  const subsets = [{ addresses, ports: many(4000, (i) => ({ name: `p${i}`, port: i + 1 })) }];
  yield request("10,000 addresses and 4,000 ports", "/api/v1/namespaces/default/endpoints", "v1", "Endpoints", {
    subsets,
  });
  const one = (i: number) => ({
    addresses: [{ ip: `10.0.${i >> 8}.${i & 255}` }],
    ports: [{ port: (i % 60_000) + 1 }],
  });
  yield request("6,000 subsets", "/api/v1/namespaces/default/endpoints", "v1", "Endpoints", {
    subsets: many(6000, one),
  });
  const peers = many(8000, (i) => ({ ipBlock: { cidr: `10.${i >> 8}.${i & 255}.0/24` } }));
  yield request("8,000 peers", network("networkpolicies"), "networking.k8s.io/v1", "NetworkPolicy", {
    spec: { podSelector: {}, ingress: [{ from: peers }] },
  });
  const except = many(20_000, (i) => `10.${i >> 8}.${i & 255}.0/24`);
  yield request("20,000 exceptions", network("networkpolicies"), "networking.k8s.io/v1", "NetworkPolicy", {
    spec: { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.0/8", except } }] }] },
  });
  const rules = many(2000, (i) => ({
    host: `h${i}.example`,
    http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "s", port: { number: 1 } } } }] },
  }));
  const tls = many(6000, (i) => ({ hosts: [`h${i}.example`] }));
  yield request("2,000 rules", network("ingresses"), "networking.k8s.io/v1", "Ingress", { spec: { rules, tls } });
}

function* access(): Generator<HostileRequest> {
  const group = "rbac.authorization.k8s.io/v1";
  const rule = (i: number) => ({ verbs: ["get"], apiGroups: [""], resources: [`r${i}`] });
  yield request("5,000 rules", `/apis/${group}/namespaces/default/roles`, group, "Role", { rules: many(5000, rule) });
  const subjects = many(10_000, (i) => ({ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: `u${i}` }));
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" };
  yield request("10,000 subjects", `/apis/${group}/namespaces/default/rolebindings`, group, "RoleBinding", {
    roleRef,
    subjects,
  });
  const flow = "flowcontrol.apiserver.k8s.io/v1";
  const flowRule = (i: number) => ({
    subjects: [{ kind: "User", user: { name: `u${i}` } }],
    resourceRules: [{ verbs: ["get"], apiGroups: ["*"], resources: ["*"], clusterScope: true }],
  });
  yield request("3,000 rules", `/apis/${flow}/flowschemas`, flow, "FlowSchema", {
    spec: { priorityLevelConfiguration: { name: "p" }, rules: many(3000, flowRule) },
  });
  const admission = "admissionregistration.k8s.io/v1";
  const hook = (i: number) => ({
    name: `h${i}.example.com`,
    clientConfig: { url: "https://192.0.2.1/" },
    rules: [{ apiGroups: [`g${i}`], apiVersions: ["v1"], operations: ["CREATE"], resources: ["r"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
  });
  const hooks = `/apis/${admission}/validatingwebhookconfigurations`;
  yield request("2,500 webhooks", hooks, admission, "ValidatingWebhookConfiguration", { webhooks: many(2500, hook) });
  const rules = many(4000, (i) => ({ ...hook(i).rules[0], scope: "*" }));
  yield request("4,000 rules", hooks, admission, "ValidatingWebhookConfiguration", {
    webhooks: [{ ...hook(0), rules }],
  });
  const matchConditions = many(64, (i) => ({
    name: `m${i}`,
    expression: `${"object.metadata.name != 'a' && ".repeat(300)}true`,
  }));
  yield request("64 long conditions", hooks, admission, "ValidatingWebhookConfiguration", {
    webhooks: [{ ...hook(0), matchConditions }],
  });
  const policies = `/apis/${admission}/validatingadmissionpolicies`;
  const matchConstraints = { resourceRules: many(10, (i) => ({ ...hook(i).rules[0] })) };
  const validation = (i: number) => ({ expression: `object.metadata.name != 'n${i}'` });
  const policy = (what: string, more: object) =>
    request(what, policies, admission, "ValidatingAdmissionPolicy", {
      spec: { matchConstraints, validations: [validation(0)], ...more },
    });
  yield policy("8,000 validations", { validations: many(8000, validation) });
  const variable = (i: number) => ({ name: `v${i}`, expression: i === 0 ? "1" : `variables.v${i - 1} + 1` });
  yield policy("3,000 variables", { variables: many(3000, variable) });
  const nested = `${"[1, 2, 3, 4, 5, 6, 7, 8, 9].map(a, ".repeat(40)}a${")".repeat(40)}`;
  yield policy("200 nested expressions", { validations: many(200, () => ({ expression: `${nested} != []` })) });
}

function* others(): Generator<HostileRequest> {
  const quota = "/api/v1/namespaces/default/resourcequotas";
  const hard = members(10_000, (i) => [`count/r${i}.example.com`, "1"]);
  yield request("10,000 resources", quota, "v1", "ResourceQuota", { spec: { hard } });
  const limit = (i: number) => [`example.com/r${i}`, "1"] as const;
  const limits = [
    { type: "Container", max: members(5000, limit), min: members(5000, limit), default: members(5000, limit) },
  ];
  yield request("15,000 limits", "/api/v1/namespaces/default/limitranges", "v1", "LimitRange", { spec: { limits } });
  const metrics = many(5000, () => ({
    type: "Resource",
    resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 1 } },
  }));
  const autoscaling = "autoscaling/v2";
  const scaled = { scaleTargetRef: { kind: "Deployment", name: "d" }, maxReplicas: 1, metrics };
  const autoscalers = `/apis/${autoscaling}/namespaces/default/horizontalpodautoscalers`;
  yield request("5,000 metrics", autoscalers, autoscaling, "HorizontalPodAutoscaler", { spec: scaled });
  const matchExpressions = many(6000, (i) => ({ ...label(i), operator: "NotIn" }));
  const workload = {
    selector: { matchLabels: { a: "b" }, matchExpressions: [] },
    template: { metadata: { labels: { a: "b" } }, spec: { containers: many(6000, (i) => container(i)) } },
  };
  const deployments = "/apis/apps/v1/namespaces/default/deployments";
  yield request("6,000 containers", deployments, "apps/v1", "Deployment", { spec: workload });
  const selecting = { ...workload, selector: { matchLabels: { a: "b" }, matchExpressions } };
  yield request("6,000 requirements", deployments, "apps/v1", "Deployment", { spec: selecting });
  const claims = many(3000, (i) => ({
    metadata: { name: `c${i}` },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1" } } },
  }));
  yield request("3,000 claims", "/apis/apps/v1/namespaces/default/statefulsets", "apps/v1", "StatefulSet", {
    spec: {
      ...workload,
      template: { ...workload.template, spec: { containers: [container(0)] } },
      volumeClaimTemplates: claims,
    },
  });
  const onPodConditions = many(20, () => ({ type: "Ready", status: "True" }));
  const rules = many(20, () => ({ action: "Ignore", onPodConditions }));
  const template = { spec: { restartPolicy: "Never", containers: many(4000, (i) => container(i)) } };
  yield request("4,000 containers and a failure policy", "/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job", {
    spec: { template, podFailurePolicy: { rules } },
  });
  const taints = many(10_000, (i) => ({ key: `k${i}`, effect: "NoSchedule" }));
  yield request("10,000 taints", "/api/v1/nodes", "v1", "Node", { spec: { taints } });
  const images = many(5000, (i) => ({ names: [`i${i}`], sizeBytes: 1 }));
  yield request("5,000 images", "/api/v1/nodes", "v1", "Node", { status: { images } });
  const text = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".repeat(10_000);
  const data = { "tls.crt": Buffer.from(text).toString("base64"), "tls.key": "" };
  yield request("10,000 certificates", "/api/v1/namespaces/default/secrets", "v1", "Secret", {
    type: "kubernetes.io/tls",
    data,
  });
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const definition = (what: string, versions: readonly object[], names: object = {}) =>
    request(what, crds, "apiextensions.k8s.io/v1", "CustomResourceDefinition", {
      metadata: { name: "valids.example.com" },
      spec: {
        group: "example.com",
        scope: "Namespaced",
        names: { plural: "valids", kind: "Valid", ...names },
        versions,
      },
    });
  const version = (i: number, more: object = {}) => ({
    name: `v${i + 1}`,
    served: true,
    storage: i === 0,
    schema,
    ...more,
  });
  yield definition(
    "500 versions",
    many(500, (i) => version(i)),
  );
  const column = (i: number) => ({ name: `c${i}`, type: "string", jsonPath: `.spec.a[?(@.b==${i})].c` });
  yield definition("8,000 columns", [version(0, { additionalPrinterColumns: many(8000, column) })]);
  yield definition("15,000 short names", [version(0)], { shortNames: many(15_000, (i) => `s${i}`) });
  const deep = (levels: number): object =>
    levels === 0 ? { type: "string" } : { type: "object", properties: { a: deep(levels - 1) } };
  yield definition("a schema of 60 levels", [version(0, { schema: { openAPIV3Schema: deep(60) } })]);
  const enumeration = many(20_000, (i) => `e${i}`);
  const property = { type: "object", properties: { e: { type: "string", enum: enumeration, default: "e1" } } };
  yield definition("20,000 values of an enumeration", [version(0, { schema: { openAPIV3Schema: property } })]);
}
