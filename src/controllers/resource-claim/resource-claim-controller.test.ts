import t from "tap";
import { eventKind } from "../../api/core/event/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { betaResourceClaimKind, betaResourceClaimTemplateKind } from "../../api/resource/flat-versions/kinds.ts";
import type { FlatResourceClaim, FlatResourceClaimTemplate } from "../../api/resource/flat-versions/schemas.ts";
import { objectsOf, type SyncOnceOptions, syncOnce } from "../../testing/controllers/sync-once.ts";
import { generatedName } from "./generated-claim.ts";
import { runResourceClaimController } from "./resource-claim-controller.ts";

const FINALIZER = "resource.kubernetes.io/delete-protection";
const namespace = "default";
const request = { name: "r", deviceClassName: "gpu", allocationMode: "ExactCount", count: 1 };
const consumer = (name: string, uid = name) => ({ resource: "pods", name, uid });

function pod(rest: { metadata?: object; spec?: object; status?: object } = {}, template = true): Pod {
  const resourceClaim = template ? { resourceClaimTemplateName: "t" } : { resourceClaimName: "c" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace, uid: "p", ...rest.metadata },
    spec: { containers: [], resourceClaims: [{ name: "gpu", ...resourceClaim }], ...rest.spec },
    status: rest.status ?? {},
  };
}

function template(fields: object = {}): FlatResourceClaimTemplate {
  const metadata = { labels: { app: "web" }, annotations: { note: "n" } };
  return {
    metadata: { name: "t", namespace },
    spec: { metadata, spec: { devices: { requests: [{ ...request, ...fields }] } } },
  };
}

function claim(status: FlatResourceClaim["status"], metadata: object = {}): FlatResourceClaim {
  return {
    metadata: { name: "c", namespace, uid: "c", ...metadata },
    spec: { devices: { requests: [request] } },
    status,
  };
}

const owner = { apiVersion: "v1", kind: "Pod", name: "p", uid: "p", controller: true };
const allocation = { devices: { results: [] } };
const named = { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "c" }] };

/** The writes for a claim that appears last. */
async function runClaim(of: Pod, claim: FlatResourceClaim, options: SyncOnceOptions = {}) {
  const objects = [objectsOf(podKind, of), objectsOf(betaResourceClaimTemplateKind, template())];
  return await syncOnce(runResourceClaimController, objectsOf(betaResourceClaimKind, claim), objects, options);
}

/** The writes for a pod that appears last. */
async function run(
  of: Pod,
  claims: readonly FlatResourceClaim[],
  templates: readonly FlatResourceClaimTemplate[] = [template()],
  options: SyncOnceOptions = {},
) {
  const objects = [objectsOf(betaResourceClaimKind, ...claims), objectsOf(betaResourceClaimTemplateKind, ...templates)];
  return await syncOnce(runResourceClaimController, objectsOf(podKind, of), objects, options);
}

t.test("the controller creates a claim from a template, and writes its name to the pod's status", async (t) => {
  const objects: unknown[] = [];
  const show = ({ verb, kind, object }: { verb: string; kind: { singular: string }; object: object }) => {
    objects.push(object);
    return `${verb} ${kind.singular}`;
  };
  t.same(await run(pod(), [], undefined, { show }), ["create resourceclaim", "patch pod"]);
  t.match(objects, [
    {
      metadata: {
        generateName: "p-gpu-",
        namespace,
        labels: { app: "web" },
        annotations: { note: "n", "resource.kubernetes.io/pod-claim-name": "gpu" },
        ownerReferences: [{ ...owner, blockOwnerDeletion: true }],
      },
      spec: { devices: { requests: [request] } },
    },
    { metadata: { name: "p" }, status: { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "p-gpu-1" }] } },
  ]);
});

const cases: readonly {
  readonly title: string;
  readonly pod: Pod;
  readonly claims?: readonly FlatResourceClaim[];
  readonly templates?: readonly FlatResourceClaimTemplate[];
  readonly writes: readonly string[];
}[] = [
  {
    title: "a template that does not exist",
    pod: pod(),
    templates: [],
    writes: [
      'event FailedResourceClaimCreation PodResourceClaim gpu: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found',
    ],
  },
  {
    title: "administrative access without the gate",
    pod: pod(),
    templates: [template({ adminAccess: true })],
    writes: [
      "event FailedResourceClaimCreation PodResourceClaim gpu: admin access is requested, but the feature is disabled",
    ],
  },
  {
    title: "alternatives without the gate",
    pod: pod(),
    templates: [template({ firstAvailable: [{ name: "x", deviceClassName: "gpu" }] })],
    writes: [
      "event FailedResourceClaimCreation PodResourceClaim gpu: template includes a prioritized list of subrequests, but the feature is disabled",
    ],
  },
  {
    title: "a claim whose name is not in the pod's status yet",
    pod: pod(),
    claims: [claim({}, { ownerReferences: [owner], annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" } })],
    writes: ["patch pod p"],
  },
  {
    title: "a claim in the pod's status",
    pod: pod({ status: named }),
    claims: [claim({}, { ownerReferences: [owner] })],
    writes: [],
  },
  {
    title: "a claim in the pod's status that is gone",
    pod: pod({ status: named }),
    writes: ["create resourceclaim p-gpu-*", "patch pod p"],
  },
  { title: "a claim that its user creates", pod: pod({}, false), writes: [] },
  {
    title: "a pod that is being deleted",
    pod: pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
    writes: [],
  },
  {
    title: "a pod that was bound without a scheduler",
    pod: pod({ spec: { nodeName: "n" } }, false),
    claims: [claim({ allocation, reservedFor: [consumer("p", "p")].slice(1) })],
    writes: ["status resourceclaim c"],
  },
  {
    title: "a bound pod whose claim is not allocated",
    pod: pod({ spec: { nodeName: "n" } }, false),
    claims: [claim({})],
    writes: [],
  },
];

const releases: readonly {
  readonly title: string;
  readonly pod: Pod;
  readonly claim: FlatResourceClaim;
  readonly writes: readonly string[];
}[] = [
  {
    title: "a pod that has ended",
    pod: pod({ spec: { nodeName: "n" }, status: { phase: "Succeeded" } }, false),
    claim: claim({ allocation, reservedFor: [consumer("p")] }, { finalizers: [FINALIZER] }),
    writes: ["status resourceclaim c", "update resourceclaim c"],
  },
  {
    title: "the generated claim of a pod that has ended",
    pod: pod({ spec: { nodeName: "n" }, status: { ...named, phase: "Failed" } }),
    claim: claim({ allocation, reservedFor: [consumer("p")] }, { finalizers: [FINALIZER], ownerReferences: [owner] }),
    writes: ["status resourceclaim c", "update resourceclaim c", "delete resourceclaim c"],
  },
  {
    title: "a pod with the name of one that is gone",
    pod: pod({ spec: { nodeName: "n" }, metadata: { uid: "q" } }, false),
    claim: claim({ allocation, reservedFor: [consumer("p"), consumer("p", "q")] }, { finalizers: [FINALIZER] }),
    writes: ["status resourceclaim c"],
  },
  {
    title: "a deleted claim without users",
    pod: pod({}, false),
    claim: claim({ allocation }, { finalizers: [FINALIZER], deletionTimestamp: "2026-01-01T00:00:00Z" }),
    writes: ["status resourceclaim c", "update resourceclaim c"],
  },
];

t.test("the controller writes what a pod and its claims need", async (t) => {
  for (const { title, pod: of, claims = [], templates, writes } of cases) {
    t.same(await run(of, claims, templates), writes, title);
  }
});

t.test("the controller releases claims of pods that are gone or have ended", async (t) => {
  for (const { title, pod: of, claim: released, writes } of releases) {
    t.same(await runClaim(of, released), writes, title);
  }
});

t.test("a claim whose allocation is released has no reservation and no finalizer left", async (t) => {
  const written: FlatResourceClaim[] = [];
  const done = pod({ spec: { nodeName: "n" }, status: { phase: "Failed" } }, false);
  await runClaim(done, claim({ allocation, reservedFor: [consumer("p")] }, { finalizers: ["a/b", FINALIZER] }), {
    show: ({ object }) => {
      written.push(object as FlatResourceClaim);
      return "";
    },
  });
  t.same(written[0]?.status, { reservedFor: [] });
  t.same(written[1]?.metadata?.finalizers, ["a/b"]);
});

t.test("a failed creation is reported in an event", async (t) => {
  const fail = (write: string) => {
    if (write.startsWith("create")) throw new Error("quota");
  };
  const [, event] = await run(pod(), [], undefined, { fail });
  t.equal(event, "event FailedResourceClaimCreation PodResourceClaim gpu: create ResourceClaim : quota");
  t.equal(eventKind.singular, "event");
});

t.test("generatedName() shortens both names in proportion", async (t) => {
  t.equal(generatedName("pod", "claim"), "pod-claim-");
  const name = generatedName("p".repeat(60), "c".repeat(30));
  t.equal(name, `${"p".repeat(37)}-${"c".repeat(18)}`);
});
