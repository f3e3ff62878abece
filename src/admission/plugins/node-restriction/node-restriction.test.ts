import { execFileSync } from "node:child_process";
import t from "tap";
import type { TokenRequest } from "../../../api/authentication/token-request.ts";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { leaseKind } from "../../../api/coordination/lease/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { secretKind } from "../../../api/core/secret/kind.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import { csiDriverKind } from "../../../api/storage/csi-driver/kind.ts";
import { csiNodeKind } from "../../../api/storage/csi-node/kind.ts";
import type { UserInfo } from "../../../auth/user.ts";
import {
  alice,
  authorizerOf,
  type ClusterObjects,
  pluginDeps,
  type RequestFields,
  rejectionOf,
  runPlugin,
} from "../../../testing/admission/admission-fixture.ts";
import { nodeRestriction } from "./node-restriction.ts";

const n1: UserInfo = { name: "system:node:n1", uid: "", groups: ["system:nodes"], extra: {} };

function pod(name: string, nodeName: string, spec: object = {}): ApiObject {
  const metadata = { name, namespace: "default", uid: `uid-${name}` };
  return { metadata, spec: { containers: [{ name: "a" }], nodeName, ...spec } } as ApiObject;
}

const tokenVolumes = [
  { name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
  { name: "claimed", persistentVolumeClaim: { claimName: "data" } },
];
const present = [
  [nodeKind, { metadata: { name: "n1", uid: "node-uid" } }],
  [podKind, pod("mine", "n1", { volumes: tokenVolumes })],
  [podKind, pod("theirs", "n2")],
  [persistentVolumeClaimKind, { metadata: { name: "data", namespace: "default" }, spec: { volumeName: "pv" } }],
  [persistentVolumeKind, { metadata: { name: "pv" }, spec: { csi: { driver: "a.b" } } }],
  [csiDriverKind, { metadata: { name: "a.b" }, spec: { tokenRequests: [{ audience: "vault" }] } }],
] as unknown as ClusterObjects;

/** The text after "is forbidden: ", or the whole message; "" if the request is admitted. */
async function reasonOf(
  kind: unknown,
  object: unknown,
  fields: RequestFields = {},
  disabledGates: readonly string[] = [],
): Promise<string> {
  const isFeatureEnabled = (gate: string): boolean =>
    !disabledGates.includes(gate) && !gate.startsWith("AllowInsecure");
  const authorizer = authorizerOf((verb, resource) => verb.endsWith("audience") && resource === "granted");
  const plugin = nodeRestriction(pluginDeps(present, { isFeatureEnabled, authorizer }));
  const message = await rejectionOf(
    runPlugin(plugin, kind as Kind, object as ApiObject | undefined, { user: n1, ...fields }),
  );
  return message.replace(/^.* is forbidden: /, "");
}

function mirror(change: { owner?: object; spec?: object; metadata?: object } = {}): object {
  const owner = { apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid", controller: true, ...change.owner };
  const annotations = { "kubernetes.io/config.mirror": "hash" };
  const metadata = { name: "static", namespace: "default", annotations, ownerReferences: [owner], ...change.metadata };
  return { metadata, spec: { containers: [{ name: "a" }], nodeName: "n1", ...change.spec } };
}

const env = (source: object): object => ({ containers: [{ name: "a", env: [{ name: "A", valueFrom: source }] }] });
const mirrors: readonly (readonly [object, string])[] = [
  [mirror(), ""],
  [
    mirror({ metadata: { annotations: {} } }),
    'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
  ],
  [mirror({ spec: { nodeName: "n2" } }), 'node "n1" can only create pods with spec.nodeName set to itself'],
  [
    mirror({ metadata: { ownerReferences: [] } }),
    'node "n1" can only create pods with an owner reference set to itself',
  ],
  [
    mirror({ metadata: { ownerReferences: [{}, {}] } }),
    'node "n1" can only create pods with a single owner reference set to itself',
  ],
  [mirror({ owner: { name: "n2" } }), 'node "n1" can only create pods with an owner reference set to itself'],
  [
    mirror({ owner: { controller: false } }),
    'node "n1" can only create pods with a controller owner reference set to itself',
  ],
  [mirror({ owner: { blockOwnerDeletion: true } }), 'node "n1" must not set blockOwnerDeletion on an owner reference'],
  [mirror({ owner: { uid: "old" } }), "node n1 UID mismatch: expected old got node-uid"],
  [mirror({ spec: { serviceAccountName: "sa" } }), 'node "n1" can not create pods that reference a service account'],
  [mirror({ spec: { imagePullSecrets: [{ name: "s" }] } }), 'node "n1" can not create pods that reference secrets'],
  [mirror({ spec: env({ secretKeyRef: { name: "s" } }) }), 'node "n1" can not create pods that reference secrets'],
  [
    mirror({ spec: env({ configMapKeyRef: { name: "s" } }) }),
    'node "n1" can not create pods that reference configmaps',
  ],
  [
    mirror({ spec: { volumes: [{ name: "v", projected: { sources: [{ clusterTrustBundle: {} }] } }] } }),
    'node "n1" can not create pods that reference clustertrustbundles',
  ],
  [
    mirror({ spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] } }),
    'node "n1" can not create pods that reference persistentvolumeclaims',
  ],
];

t.test("nodeRestriction lets a node create only its own mirror pods without references", async (t) => {
  for (const [object, expected] of mirrors) t.equal(await reasonOf(podKind, object), expected);
});

t.test("nodeRestriction lets a node update, evict and delete only pods bound to it", async (t) => {
  const [mine, theirs] = [pod("mine", "n1"), pod("theirs", "n2")];
  const status = (oldObject: ApiObject): RequestFields => ({ oldObject, subresource: "status" });
  t.equal(await reasonOf(podKind, mine, status(mine)), "");
  t.equal(
    await reasonOf(podKind, theirs, status(theirs)),
    'node "n1" can only update pod status for pods with spec.nodeName set to itself',
  );
  const labelled = { ...mine, metadata: { ...mine.metadata, labels: { a: "b" } } };
  t.equal(await reasonOf(podKind, labelled, status(mine)), 'node "n1" cannot update labels through pod status');
  t.equal(await reasonOf(podKind, undefined, { operation: "DELETE", oldObject: mine }), "");
  t.equal(
    await reasonOf(podKind, undefined, { operation: "DELETE", oldObject: theirs }),
    'node "n1" can only delete pods with spec.nodeName set to itself',
  );
  t.equal(
    await reasonOf(podKind, mine, { oldObject: mine }),
    'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods',
  );
  t.equal(
    await reasonOf(podKind, mine, { oldObject: mine, subresource: "resize" }),
    "unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed",
  );
  t.equal(await reasonOf(podKind, mine, { operation: "CREATE", subresource: "eviction" }), "");
  t.equal(
    await reasonOf(podKind, theirs, { operation: "CREATE", subresource: "eviction" }),
    "node n1 can only evict pods with spec.nodeName set to itself",
  );
  const gone = pod("gone", "n1");
  t.equal(await reasonOf(podKind, gone, { operation: "CREATE", subresource: "eviction" }), 'pod "gone" not found');
});

t.test("nodeRestriction lets a node change only its own Node, except taints and restricted labels", async (t) => {
  const node = (labels: object, spec: object = {}, name = "n1"): ApiObject =>
    ({ metadata: { name, labels }, spec }) as ApiObject;
  const own = {
    "kubernetes.io/hostname": "n1",
    "svc.io/hostname": "n1",
    "node.kubernetes.io/rack": "7",
    "svclet.svc.io/a": "b",
    "kubelet.kubernetes.io/a": "b",
    "topology.svc.io/zone": "z",
    "example.com/a": "b",
    disk: "ssd",
  };
  const taints = [{ key: "a", effect: "NoSchedule" }];
  t.equal(await reasonOf(nodeKind, node(own, { taints })), "");
  t.equal(
    await reasonOf(
      nodeKind,
      node({ "node-role.svc.io/x": "", "node-restriction.kubernetes.io/x": "", "a.k8s.io/b": "" }),
    ),
    'node "n1" is not allowed to set the following labels: a.k8s.io/b, ' +
      "node-restriction.kubernetes.io/x, node-role.svc.io/x",
  );
  t.equal(await reasonOf(nodeKind, node({}, {}, "n2")), 'node "n1" is not allowed to modify node "n2"');
  const source = { configSource: { configMap: { name: "a" } } };
  t.equal(
    await reasonOf(nodeKind, node({}, source)),
    'node "n1" is not allowed to create pods with a non-nil configSource',
  );
  const update = (next: ApiObject, oldObject: ApiObject): Promise<string> => reasonOf(nodeKind, next, { oldObject });
  t.equal(await update(node(own, { taints }), node({ "kubernetes.io/hostname": "n0" }, { taints })), "");
  t.equal(await update(node({}, { taints }), node({})), 'node "n1" is not allowed to modify taints');
  const emptySource = node({}, { configSource: {} });
  t.match(await update(emptySource, node({})), /is not allowed to update configSource to a new non-nil configSource$/);
  const owned = { metadata: { name: "n1", ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "x", uid: "y" }] } };
  t.equal(await update(owned, node({})), 'node "n1" is not allowed to modify ownerReferences');
  t.equal(await update(node({}, source), node({}, source)), "");
  t.equal(
    await update(node({}, source), node({})),
    'node "n1" is not allowed to update configSource to a new non-nil configSource',
  );
  const role = { "node-role.kubernetes.io/control-plane": "" };
  t.equal(await update(node(role), node(role)), "");
  t.equal(await update(node({}), node(role)), "is not allowed to modify labels: node-role.kubernetes.io/control-plane");
});

t.test("nodeRestriction lets a node write only its own Lease and CSINode", async (t) => {
  const lease = (name: string, namespace = "kube-node-lease"): ApiObject => ({ metadata: { name, namespace } });
  t.equal(await reasonOf(leaseKind, lease("n1")), "");
  t.equal(await reasonOf(leaseKind, lease("n1"), { oldObject: lease("n1") }), "");
  const other = "can only access node lease with the same name as the requesting node";
  t.equal(await reasonOf(leaseKind, lease("n2")), other);
  t.equal(await reasonOf(leaseKind, lease("n2"), { oldObject: lease("n2") }), other);
  const namespace = 'can only access leases in the "kube-node-lease" system namespace';
  t.equal(await reasonOf(leaseKind, lease("n1", "default")), namespace);
  t.equal(await reasonOf(csiNodeKind, { metadata: { name: "n1" } }), "");
  const csi = "can only access CSINode with the same name as the requesting node";
  t.equal(await reasonOf(csiNodeKind, { metadata: { name: "n2" } }), csi);
});

t.test("nodeRestriction lets a node update only capacity and conditions of a claim's status", async (t) => {
  const claim = (status: object, labels = {}): ApiObject =>
    ({ metadata: { name: "data", namespace: "default", labels }, status }) as ApiObject;
  const fields: RequestFields = { oldObject: claim({ phase: "Bound" }), subresource: "status" };
  const grown = claim({ phase: "Bound", capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } });
  t.equal(await reasonOf(persistentVolumeClaimKind, grown, fields), "");
  const only = 'node "n1" is not allowed to update fields other than status.capacity and status.conditions:';
  const off = ["RecoverVolumeExpansionFailure"];
  t.equal(await reasonOf(persistentVolumeClaimKind, grown, fields, off), `${only} status.allocatedResources`);
  t.equal(
    await reasonOf(persistentVolumeClaimKind, claim({ phase: "Lost" }, { a: "b" }), fields),
    `${only} metadata.labels, status.phase`,
  );
  t.equal(await reasonOf(persistentVolumeClaimKind, grown, { oldObject: grown }), "may only update PVC status");
});

t.test(
  "nodeRestriction lets a node request tokens only for its pods, with audiences of their volumes or granted by rules",
  async (t) => {
    const token = (name: string, audiences: readonly string[] = [], bound: object = {}): TokenRequest =>
      ({
        metadata: { name: "sa", namespace: "default" },
        spec: { audiences, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid: `uid-${name}`, ...bound } },
      }) as TokenRequest;
    const fields = { operation: "CREATE", subresource: "token" } as const;
    const request = (object: TokenRequest, off: readonly string[] = []) =>
      reasonOf(serviceAccountKind, object, fields, off);
    t.equal(await request(token("mine")), "");
    t.equal(await request(token("mine", ["vault"])), "", "audience of a CSI driver");
    t.equal(await request(token("mine", ["granted"])), "", "audience granted by rules");
    const unbound = "node requested token not bound to a pod";
    t.equal(await request(token("mine", [], { kind: "Secret" })), unbound);
    t.equal(await request({ spec: { audiences: [] } } as TokenRequest), unbound);
    t.equal(await request(token("mine", [], { uid: "" })), "node requested token with a pod binding without a uid");
    t.match(
      await request(token("mine", [], { uid: "old" })),
      /^the UID in the bound object reference \(old\) does not match/,
    );
    t.equal(await request(token("theirs")), "node requested token bound to a pod scheduled on a different node");
    t.equal(await request(token("gone")), 'pod "gone" not found');
    t.equal(await request(token("mine", ["a", "b"])), "node may only request 0 or 1 audiences");
    t.equal(
      await request(token("mine", ["other"])),
      'audience "other" not found in pod spec volume, system:node:n1 is not authorized ' +
        "to request tokens for this audience",
    );
    t.equal(await request(token("mine", ["other"]), ["ServiceAccountNodeAudienceRestriction"]), "");
  },
);

t.test("nodeRestriction lets a node request certificates only for its own name", async (t) => {
  const directory = t.testdir();
  const attributesOf = (subject: string, signerName = "kubernetes.io/kubelet-serving"): object => {
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", `${directory}/key`];
    const pem = execFileSync("openssl", ["req", "-new", ...key, "-subj", subject], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    return { metadata: { name: "csr" }, spec: { signerName, request: pem.toString("base64") } };
  };
  const kind = certificateSigningRequestKind;
  t.equal(await reasonOf(kind, attributesOf("/O=system:nodes/CN=system:node:n1")), "");
  const own = "can only create a node CSR with CN=system:node:n1";
  t.equal(await reasonOf(kind, attributesOf("/O=system:nodes/CN=system:node:n2")), own);
  t.equal(await reasonOf(kind, attributesOf("/CN=other", "example.com/signer")), "");
  const broken = { metadata: { name: "csr" }, spec: { signerName: "kubernetes.io/kubelet-serving", request: "" } };
  t.match(await reasonOf(kind, broken), /^unable to parse csr: /);
});

t.test("nodeRestriction does not apply to other users or other resources", async (t) => {
  const map = { metadata: { name: "s", namespace: "default" } };
  t.equal(await reasonOf(secretKind, map), "");
  t.equal(await reasonOf(podKind, pod("web", "n2"), { user: alice }), "");
  t.equal(await reasonOf(podKind, pod("web", "n2"), { user: { ...n1, groups: [] } }), "");
  const unnamed = { ...n1, name: "system:node:" };
  t.equal(await reasonOf(podKind, mirror(), { user: unnamed }), 'could not determine node from user "system:node:"');
});
