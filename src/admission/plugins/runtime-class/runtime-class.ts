/** RuntimeClass: sets a pod's overhead, node selector and tolerations from its runtime class. */

import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type Toleration, toleration } from "../../../api/core/pod-spec/affinity.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { resourceList } from "../../../api/core/resources/schema.ts";
import { runtimeClassKind } from "../../../api/node/runtime-class/kind.ts";
import type { RuntimeClass } from "../../../api/node/runtime-class/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { type AdmissionRequest, matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, ObjectReader } from "../../chain/plugin.ts";

export function runtimeClass({ reader }: { readonly reader: ObjectReader }): AdmissionPlugin {
  return {
    name: "RuntimeClass",
    handles: (attributes) => matchesResource(attributes, podKind, ["CREATE"]),
    mutate(request) {
      const pod = request.object as Pod;
      return pod.spec?.runtimeClassName === undefined ? undefined : applyClass(pod, pod.spec, request);
    },
    validate(request) {
      const pod = request.object as Pod;
      return pod.spec?.runtimeClassName === undefined && !hasOverhead(pod) ? undefined : validateOverhead(pod, request);
    },
  };

  async function applyClass(pod: Pod, spec: PodSpec, request: AdmissionRequest): Promise<Pod> {
    const found = await findClass(pod, reader, request);
    const fixed = found?.overhead?.podFixed;
    if (fixed !== undefined && hasOverhead(pod) && !semanticEqual(resourceList, spec.overhead, fixed)) {
      throw newForbidden(request, OVERHEAD_DIFFERS);
    }
    const withOverhead = fixed === undefined ? spec : { ...spec, overhead: fixed };
    return { ...pod, spec: applyScheduling(withOverhead, found, request) } as Pod;
  }

  async function validateOverhead(pod: Pod, request: AdmissionRequest): Promise<void> {
    const overhead = (await findClass(pod, reader, request))?.overhead;
    if (overhead !== undefined) {
      if (!semanticEqual(resourceList, pod.spec?.overhead, overhead.podFixed))
        throw newForbidden(request, OVERHEAD_DIFFERS);
    } else if (hasOverhead(pod)) {
      throw newForbidden(request, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead");
    }
  }
}

const OVERHEAD_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

function hasOverhead({ spec }: Pod): boolean {
  return Object.keys(spec?.overhead ?? {}).length > 0;
}

async function findClass(
  { spec }: Pod,
  reader: ObjectReader,
  request: AdmissionRequest,
): Promise<RuntimeClass | undefined> {
  const name = spec?.runtimeClassName;
  if (name === undefined) return undefined;
  const found = await reader.get(runtimeClassKind, "", name, request);
  if (found === undefined) throw newForbidden(request, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
  return found;
}

function applyScheduling(spec: PodSpec, found: RuntimeClass | undefined, request: AdmissionRequest): PodSpec {
  const { nodeSelector = {}, tolerations = [] } = found?.scheduling ?? {};
  for (const [label, value] of Object.entries(nodeSelector)) {
    const own = getMember(spec.nodeSelector, label);
    if (own === undefined || own === value) continue;
    const pods = `pod.spec.nodeSelector[${label}] = ${own}`;
    throw newForbidden(request, `conflict: runtimeClass.scheduling.nodeSelector[${label}] = ${value}; ${pods}`);
  }
  const merged = { ...spec.nodeSelector, ...nodeSelector };
  return {
    ...spec,
    ...(Object.keys(merged).length === 0 ? {} : { nodeSelector: merged }),
    ...(tolerations.length === 0 ? {} : { tolerations: mergeTolerations(spec.tolerations ?? [], tolerations) }),
  };
}

function mergeTolerations(existing: readonly Toleration[], added: readonly Toleration[]): readonly Toleration[] {
  const byKey = Map.groupBy(existing, identityOf);
  const isPresent = (one: Toleration): boolean =>
    byKey.get(identityOf(one))?.some((other) => semanticEqual(toleration, one, other)) === true;
  return [...existing, ...added.filter((one) => !isPresent(one))];
}

/** Equal for tolerations that are semantically equal. */
function identityOf({ key, operator, value, effect, tolerationSeconds }: Toleration): string {
  return JSON.stringify([key || null, operator || null, value || null, effect || null, tolerationSeconds]);
}
