/** The operations of resources that need no pods. */
import { type Behaviours, podOf } from "../harness/behaviour.ts";
import { testOperations } from "../harness/operations.ts";

const discovered = true;
const container = { name: "c", image: "example.invalid/image:1" };
const now = "2026-01-01T00:00:00Z";
const condition = (type: string, reason: string) => ({
  conditions: [{ type, status: "True", reason, message: reason, lastTransitionTime: now }],
});
const conditions = (type: string) => ({
  patch: { status: condition(type, "Patched") },
  update: { status: condition(type, "Updated") },
});

const flowSchema = testOperations({
  make: (at, index) => ({
    apiVersion: "flowcontrol.apiserver.k8s.io/v1",
    kind: "FlowSchema",
    metadata: { name: `${at.name}-${index}` },
    spec: {
      matchingPrecedence: 10_000,
      priorityLevelConfiguration: { name: "global-default" },
      distinguisherMethod: { type: "ByUser" },
      rules: [
        {
          subjects: [{ kind: "User", user: { name: "example-e2e-non-existent-user" } }],
          nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
        },
      ],
    },
  }),
  change: { patch: { spec: { matchingPrecedence: 9999 } }, update: { spec: { matchingPrecedence: 9998 } } },
  subresources: { status: conditions("Example") },
  discovered,
});

const priorityLevel = testOperations({
  make: (at, index) => ({
    apiVersion: "flowcontrol.apiserver.k8s.io/v1",
    kind: "PriorityLevelConfiguration",
    metadata: { name: `${at.name}-${index}` },
    spec: {
      type: "Limited",
      limited: { nominalConcurrencyShares: 2, limitResponse: { type: "Reject" } },
    },
  }),
  change: {
    patch: { spec: { limited: { nominalConcurrencyShares: 4 } } },
    update: { spec: { limited: { nominalConcurrencyShares: 6 } } },
  },
  subresources: { status: conditions("Example") },
  discovered,
});

const policy = testOperations({
  make: (at, index) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: `${at.name}-${index}` },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
        ],
      },
      validations: [{ expression: "object.spec.replicas <= 100" }],
    },
  }),
  change: { patch: { spec: { failurePolicy: "Ignore" } }, update: { spec: { failurePolicy: "Fail" } } },
  subresources: { status: conditions("Example") },
  discovered,
});

const policyBinding = testOperations({
  make: (at, index) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: `${at.name}-${index}` },
    spec: { policyName: `${at.name}-absent`, validationActions: ["Deny"] },
  }),
  change: {
    patch: { spec: { validationActions: ["Warn"] } },
    update: { spec: { validationActions: ["Deny", "Audit"] } },
  },
  discovered,
});

const cronJob = testOperations({
  make: (_, index) => ({
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name: `never-${index}` },
    spec: {
      schedule: "0 0 31 2 *",
      concurrencyPolicy: "Allow",
      jobTemplate: { spec: { template: { spec: { restartPolicy: "OnFailure", containers: [container] } } } },
    },
  }),
  change: { patch: { spec: { suspend: true } }, update: { spec: { suspend: false } } },
  subresources: {
    status: {
      patch: { metadata: { annotations: { patchedstatus: "true" } }, status: { lastScheduleTime: now } },
      update: { status: { lastScheduleTime: "2026-02-01T00:00:00Z" } },
    },
  },
});

const endpointSlice = testOperations({
  make: (_, index) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: `slice-${index}` },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.1.2.3"] }],
    ports: [{ name: "http", port: 80, protocol: "TCP" }],
  }),
  change: {
    patch: { endpoints: [{ addresses: ["10.1.2.4"] }] },
    update: { endpoints: [{ addresses: ["10.1.2.5"], conditions: { ready: true } }] },
  },
  discovered,
});

const ingress = testOperations({
  make: (_, index) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: `ingress-${index}` },
    spec: { defaultBackend: { service: { name: "default", port: { number: 80 } } } },
  }),
  change: {
    patch: { spec: { defaultBackend: { service: { name: "patched", port: { number: 81 } } } } },
    update: { spec: { defaultBackend: { service: { name: "updated", port: { number: 82 } } } } },
  },
  subresources: {
    status: {
      patch: { status: { loadBalancer: { ingress: [{ ip: "169.1.1.1" }] } } },
      update: { status: { loadBalancer: { ingress: [{ ip: "169.1.1.2" }] } } },
    },
  },
  discovered,
});

const ingressClass = testOperations({
  make: (at, index) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: { name: `${at.name}-${index}` },
    spec: { controller: "example.com/controller" },
  }),
  change: {
    patch: { spec: { parameters: { kind: "Settings", name: "patched", scope: "Cluster" } } },
    update: { spec: { parameters: { kind: "Settings", name: "updated", scope: "Cluster" } } },
  },
  discovered,
});

const ipAddress = testOperations({
  make: (_, index) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "IPAddress",
    metadata: { name: `192.168.1.${index + 1}` },
    spec: { parentRef: { group: "", resource: "services", namespace: "default", name: "kubernetes" } },
  }),
  discovered,
});

const serviceCidr = testOperations({
  make: (at, index) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name: `${at.name}-${index}` },
    spec: { cidrs: [`10.94.${index}.0/24`] },
  }),
  subresources: { status: conditions("Example") },
  discovered,
});

const runtimeClass = testOperations({
  make: (at, index) => ({
    apiVersion: "node.k8s.io/v1",
    kind: "RuntimeClass",
    metadata: { name: `${at.name}-${index}` },
    handler: "conformance",
  }),
  discovered,
});

const storageCapacity = testOperations({
  make: (_, index) => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIStorageCapacity",
    metadata: { name: `capacity-${index}` },
    storageClassName: "example",
    capacity: "1Gi",
  }),
  change: { patch: { capacity: "2Gi" }, update: { capacity: "3Gi" } },
  discovered,
});

const csiDriver = testOperations({
  make: (at, index) => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "CSIDriver",
    metadata: { name: `inline-driver-${at.name}-${index}` },
    spec: { attachRequired: false, volumeLifecycleModes: ["Ephemeral"] },
  }),
});

const csiNode = testOperations({
  make: (at, index) => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "CSINode",
    metadata: { name: `${at.name}-${index}` },
    spec: { drivers: [] },
  }),
});

const storageClass = testOperations({
  make: (at, index) => ({
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name: `${at.name}-${index}` },
    provisioner: "example.com/provisioner",
  }),
  change: { patch: { allowVolumeExpansion: true }, update: { allowVolumeExpansion: false } },
});

const attachment = (name: string) => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "VolumeAttachment",
  metadata: { name },
  spec: { attacher: "example.com", nodeName: `${name}-node`, source: { persistentVolumeName: `${name}-volume` } },
});

const volumeAttachment = testOperations({ make: (at, index) => attachment(`${at.name}-${index}`) });
const volumeAttachmentStatus = testOperations({
  make: (at, index) => attachment(`${at.name}-${index}`),
  subresources: { status: { patch: { status: { attached: true } }, update: { status: { attached: false } } } },
});

const configMap = testOperations({
  make: (_, index) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: `map-${index}` },
    data: { valueName: "value" },
  }),
  change: { patch: { data: { valueName: "value1" } }, update: { data: { valueName: "value2" } } },
});

const secret = testOperations({
  make: (_, index) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `secret-${index}` },
    data: { key: "dmFsdWU=" },
  }),
  change: { patch: { data: { key: "dmFsdWUx" } }, update: { data: { key: "dmFsdWUy" } } },
});

const podTemplate = testOperations({
  make: (_, index) => ({
    apiVersion: "v1",
    kind: "PodTemplate",
    metadata: { name: `template-${index}` },
    template: { spec: { containers: [container] } },
  }),
});

const lease = testOperations({
  make: (_, index) => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: `lease-${index}` },
    spec: {
      holderIdentity: "holder",
      leaseDurationSeconds: 30,
      acquireTime: "2026-01-01T00:00:00.000000Z",
      renewTime: "2026-01-01T00:00:05.000000Z",
      leaseTransitions: 0,
    },
  }),
  change: {
    patch: { spec: { leaseDurationSeconds: 60, leaseTransitions: 2 } },
    update: { spec: { holderIdentity: "holder2", leaseTransitions: 1, renewTime: "2026-01-01T00:00:09.000000Z" } },
  },
});

const csiPod = testOperations({
  make: (at, index) =>
    podOf(`pod-${index}`, "true", {
      container: { volumeMounts: [{ name: "v", mountPath: "/v" }] },
      spec: {
        // No node has the label, so that no agent looks for the driver.
        nodeSelector: { absent: "true" },
        volumes: [{ name: "v", csi: { driver: `inline-driver-${at.name}`, volumeAttributes: { key: "value" } } }],
      },
    }),
});

const serviceAccount = testOperations({
  make: (_, index) => ({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: `account-${index}` } }),
  change: {
    patch: { automountServiceAccountToken: false },
    update: { automountServiceAccountToken: true },
  },
});

const resourceQuota = testOperations({
  make: (_, index) => ({
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: { name: `quota-${index}` },
    spec: { hard: { cpu: "1", memory: "500Mi" } },
  }),
  change: {
    patch: { spec: { hard: { memory: "750Mi" } } },
    update: { spec: { hard: { cpu: "2", memory: "1Gi" } } },
  },
});

const node = testOperations({
  make: (at, index) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `${at.name}-${index}` },
    spec: { unschedulable: true },
  }),
});

const budget = testOperations({
  make: (_, index) => ({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: `budget-${index}` },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "absent" } } },
  }),
  change: { patch: { spec: { minAvailable: 2 } }, update: { spec: { minAvailable: "30%" } } },
});

export const builtInResources: Behaviours = {
  "API priority and fairness should support FlowSchema API operations": flowSchema,
  "API priority and fairness should support PriorityLevelConfiguration API operations": priorityLevel,
  "ValidatingAdmissionPolicy should support ValidatingAdmissionPolicy API operations": policy,
  "ValidatingAdmissionPolicy should support ValidatingAdmissionPolicyBinding API operations": policyBinding,
  "CronJob should support CronJob API operations": cronJob,
  "EndpointSlice should support creating EndpointSlice API operations": endpointSlice,
  "Ingress API should support creating Ingress API operations": ingress,
  "IngressClass API should support creating IngressClass API operations": ingressClass,
  "ServiceCIDR and IPAddress API should support IPAddress API operations": ipAddress,
  "ServiceCIDR and IPAddress API should support ServiceCIDR API operations": serviceCidr,
  "RuntimeClass should support RuntimeClasses API operations": runtimeClass,
  "CSIStorageCapacity should support CSIStorageCapacities API operations": storageCapacity,
  "CSIInlineVolumes should run through the lifecycle of a CSIDriver": csiDriver,
  "CSIInlineVolumes should support CSIVolumeSource in Pod API": csiPod,
  "CSINodes CSI Conformance should run through the lifecycle of a csinode": csiNode,
  "StorageClasses CSI Conformance should run through the lifecycle of a StorageClass": storageClass,
  "VolumeAttachment Conformance should run through the lifecycle of a VolumeAttachment": volumeAttachment,
  "VolumeAttachment Conformance should apply changes to a volumeattachment status": volumeAttachmentStatus,
  "ConfigMap should run through a ConfigMap lifecycle": configMap,
  "Secrets should patch a secret": secret,
  "PodTemplates should run the lifecycle of PodTemplates": podTemplate,
  "PodTemplates should replace a pod template": podTemplate,
  "PodTemplates should delete a collection of pod templates": podTemplate,
  "Lease lease API should be available": lease,
  "ServiceAccounts should run through the lifecycle of a ServiceAccount": serviceAccount,
  "ServiceAccounts should update a ServiceAccount": serviceAccount,
  "ResourceQuota should manage the lifecycle of a ResourceQuota": resourceQuota,
  "Node Lifecycle should run through the lifecycle of a node": node,
  "DisruptionController should create a PodDisruptionBudget": budget,
  "DisruptionController Listing PodDisruptionBudgets for all namespaces should list and delete a collection of PodDisruptionBudgets":
    budget,
};
