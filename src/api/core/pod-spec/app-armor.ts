/** AppArmor profiles were annotations before they were a field: new pods get both from either. */
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import type { Container, EphemeralContainer } from "../container/schema.ts";
import { type AppArmorProfile, appArmorProfile } from "../container/security-context.ts";
import { profileAnnotation, validateAppArmorProfile } from "../container/security-context-validation.ts";
import type { Pod } from "../pod/schema.ts";
import { APP_ARMOR } from "./annotation-validation.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";
import { appArmorWarning } from "./warnings.ts";

const LOCALHOST = "localhost/";

/** Undefined for text that is not a profile. */
function parseProfile(annotation: string): AppArmorProfile | undefined {
  if (annotation === "unconfined") return { type: "Unconfined" };
  if (annotation === "runtime/default") return { type: "RuntimeDefault" };
  if (!annotation.startsWith(LOCALHOST)) return undefined;
  const profile: AppArmorProfile = { type: "Localhost", localhostProfile: annotation.slice(LOCALHOST.length) };
  return validateAppArmorProfile(profile, "").length === 0 ? profile : undefined;
}

export function syncAppArmor(pod: Pod): Pod {
  const { spec } = pod;
  if (spec === undefined || spec.os?.name === "windows") return pod;
  const annotations = pod.metadata?.annotations ?? {};
  const added: Record<string, string> = {};
  for (const { container } of containersWithPaths(spec, "")) {
    const profile = container.securityContext?.appArmorProfile ?? spec.securityContext?.appArmorProfile;
    const name = `${APP_ARMOR}${container.name}`;
    const text = profile === undefined || annotations[name] !== undefined ? "" : profileAnnotation(profile);
    if (text !== "") added[name] = text;
  }
  const annotated =
    Object.keys(added).length === 0
      ? pod
      : { ...pod, metadata: { ...pod.metadata, annotations: { ...annotations, ...added } } };
  return { ...annotated, spec: setProfilesFromAnnotations(spec, annotations) };
}

function setProfilesFromAnnotations(spec: PodSpec, annotations: Readonly<Record<string, string>>): PodSpec {
  if (!Object.keys(annotations).some((name) => name.startsWith(APP_ARMOR))) return spec;
  const setProfile = <C extends Container | EphemeralContainer>(container: C): C => {
    const annotation = annotations[`${APP_ARMOR}${container.name}`];
    if (annotation === undefined || container.securityContext?.appArmorProfile !== undefined) return container;
    const profile = parseProfile(annotation);
    const common = spec.securityContext?.appArmorProfile;
    if (profile === undefined || (common !== undefined && semanticEqual(appArmorProfile, profile, common))) {
      return container;
    }
    return { ...container, securityContext: { ...container.securityContext, appArmorProfile: profile } };
  };
  return {
    ...spec,
    containers: spec.containers.map(setProfile),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(setProfile) }),
  };
}

/** For the pod as the client sent it: once both are set, the original is unknown. */
export function appArmorWarnings({ metadata, spec }: Pod): readonly string[] {
  if (spec === undefined || spec.os?.name === "windows") return [];
  const warnings: string[] = [];
  for (const { container } of containersWithPaths(spec, "")) {
    const name = `${APP_ARMOR}${container.name}`;
    const annotation = metadata?.annotations?.[name];
    if (annotation === undefined || container.securityContext?.appArmorProfile !== undefined) continue;
    if (parseProfile(annotation) !== undefined) warnings.push(appArmorWarning("metadata.annotations", name));
  }
  return warnings;
}
