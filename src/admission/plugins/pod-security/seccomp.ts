/** What pods say of the system calls that they may make. */
import {
  type CheckedPod,
  type CheckPod,
  containersOf,
  counted,
  namesWhere,
  quoted,
  settersOf,
  sorted,
} from "./check.ts";

/** Whether a profile holds a process back at all; those of AppArmor have the same types. */
export function isConfined(type: string): boolean {
  return type === "RuntimeDefault" || type === "Localhost";
}

export interface SeccompProfiles {
  /** Who says what must not be said. */
  readonly forbidden: ReturnType<CheckPod>;
  /** Who says nothing, and for whom the pod says nothing either. */
  readonly missing: ReturnType<CheckPod>;
}

export function seccompProfiles(pod: CheckedPod): SeccompProfiles {
  const own = pod.spec.securityContext?.seccompProfile?.type;
  const typeOf = ({ securityContext }: ReturnType<typeof containersOf>[number]) =>
    securityContext?.seccompProfile?.type;
  const isBad = (type: string | undefined): type is string => type !== undefined && !isConfined(type);
  const bad = namesWhere(pod, (container) => isBad(typeOf(container)));
  const silent = own !== undefined && isConfined(own) ? [] : namesWhere(pod, (each) => typeOf(each) === undefined);
  const types = quoted(sorted([own, ...containersOf(pod).map(typeOf)].filter((type) => isBad(type))));
  const isForbidden = isBad(own) || bad.length > 0;
  const member = "securityContext.seccompProfile.type to";
  return {
    forbidden: isForbidden
      ? { reason: "seccompProfile", detail: `${settersOf(isBad(own), bad)} must not set ${member} ${types}` }
      : undefined,
    missing:
      silent.length === 0
        ? undefined
        : {
            reason: "seccompProfile",
            detail: `pod or ${counted("container", silent)} must set ${member} "RuntimeDefault" or "Localhost"`,
          },
  };
}
