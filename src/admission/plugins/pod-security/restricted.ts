/** The checks of the restricted level of the Pod Security Standards, in addition to the baseline. */
import type { Volume } from "../../../api/core/volume/schema.ts";
import { addedCapabilities } from "./baseline.ts";
import {
  type Check,
  type CheckedPod,
  type CheckPod,
  containersOf,
  exceptOnWindows,
  isRelaxed,
  namesText,
  namesWhere,
  pluralize,
  quoteList,
  settersOf,
  sortUnique,
} from "./check.ts";
import { checkSeccompProfiles } from "./seccomp.ts";

const NET_BIND_SERVICE: ReadonlySet<string> = new Set(["NET_BIND_SERVICE"]);

const ALLOWED_VOLUMES = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
] as const;

/** Sorted by id, the order of violations in messages; they follow those of the baseline. */
export const restricted: readonly Check[] = [
  {
    id: "allowPrivilegeEscalation",
    versions: [
      [8, allowPrivilegeEscalation],
      [25, exceptOnWindows(allowPrivilegeEscalation)],
    ],
  },
  {
    id: "capabilities_restricted",
    versions: [
      [22, capabilities],
      [25, exceptOnWindows(capabilities)],
    ],
    overrides: ["capabilities_baseline"],
  },
  { id: "restrictedVolumes", versions: [[0, restrictedVolumes]], overrides: ["hostPathVolumes"] },
  { id: "runAsNonRoot", versions: [[0, runAsNonRoot]] },
  { id: "runAsUser", versions: [[23, runAsUser]] },
  {
    id: "seccompProfile_restricted",
    versions: [
      [19, seccompProfile],
      [25, exceptOnWindows(seccompProfile)],
    ],
    overrides: ["seccompProfile_baseline"],
  },
];

function allowPrivilegeEscalation(pod: CheckedPod): ReturnType<CheckPod> {
  const bad = namesWhere(pod, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (bad.length === 0) return undefined;
  const detail = `${namesText("container", bad)} must set securityContext.allowPrivilegeEscalation=false`;
  return { reason: "allowPrivilegeEscalation != false", detail };
}

function capabilities(pod: CheckedPod): ReturnType<CheckPod> {
  const keeping = namesWhere(
    pod,
    ({ securityContext }) => !(securityContext?.capabilities?.drop ?? []).includes("ALL"),
  );
  const reason = "unrestricted capabilities";
  const added = addedCapabilities(pod, reason, NET_BIND_SERVICE);
  const details = [
    ...(keeping.length === 0
      ? []
      : [`${namesText("container", keeping)} must set securityContext.capabilities.drop=["ALL"]`]),
    ...(added === undefined ? [] : [added.detail]),
  ];
  return details.length === 0 ? undefined : { reason, detail: details.join("; ") };
}

function restrictedVolumes({ spec }: CheckedPod): ReturnType<CheckPod> {
  const bad = (spec.volumes ?? []).filter((volume) => ALLOWED_VOLUMES.every((source) => volume[source] === undefined));
  if (bad.length === 0) return undefined;
  const names = bad.map(({ name }) => name);
  const types = sortUnique(bad.map(sourceOf));
  const uses = `${bad.length === 1 ? "uses" : "use"} ${pluralize("restricted volume type", types.length)}`;
  return { reason: "restricted volume types", detail: `${namesText("volume", names)} ${uses} ${quoteList(types)}` };
}

function sourceOf(volume: Volume): string {
  return Object.keys(volume).find((member) => member !== "name") ?? "unknown";
}

function runAsNonRoot(pod: CheckedPod): ReturnType<CheckPod> {
  if (isRelaxed(pod)) return undefined;
  const own = pod.spec.securityContext?.runAsNonRoot;
  const bad = namesWhere(pod, ({ securityContext }) => securityContext?.runAsNonRoot === false);
  const reason = "runAsNonRoot != true";
  if (own === false || bad.length > 0) {
    return { reason, detail: `${settersOf(own === false, bad)} must not set securityContext.runAsNonRoot=false` };
  }
  const silent = own === true ? [] : namesWhere(pod, (each) => each.securityContext?.runAsNonRoot === undefined);
  if (silent.length === 0) return undefined;
  const detail = `pod or ${namesText("container", silent)} must set securityContext.runAsNonRoot=true`;
  return { reason, detail };
}

function runAsUser(pod: CheckedPod): ReturnType<CheckPod> {
  if (isRelaxed(pod)) return undefined;
  const isRoot = (user: number | bigint | undefined) => user !== undefined && Number(user) === 0;
  const own = isRoot(pod.spec.securityContext?.runAsUser);
  const bad = containersOf(pod)
    .filter(({ securityContext }) => isRoot(securityContext?.runAsUser))
    .map(({ name }) => name);
  if (!own && bad.length === 0) return undefined;
  return { reason: "runAsUser=0", detail: `${settersOf(own, bad)} must not set runAsUser=0` };
}

function seccompProfile(pod: CheckedPod): ReturnType<CheckPod> {
  const { forbidden, missing } = checkSeccompProfiles(pod);
  return forbidden ?? missing;
}
