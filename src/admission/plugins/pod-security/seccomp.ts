/** Checks of seccomp profiles. */
import {
  type CheckedPod,
  type CheckPod,
  containersOf,
  namesText,
  namesWhere,
  quoteList,
  settersOf,
  sortUnique,
} from "./check.ts";

/** Whether the profile type restricts a process. AppArmor has the same types. */
export function isConfined(type: string): boolean {
  return type === "RuntimeDefault" || type === "Localhost";
}

export interface SeccompProfiles {
  /** The violation of pods that set a forbidden profile. */
  readonly forbidden: ReturnType<CheckPod>;
  /** The violation of containers without a profile, in a pod without one. */
  readonly missing: ReturnType<CheckPod>;
}

export function checkSeccompProfiles(pod: CheckedPod): SeccompProfiles {
  const own = pod.spec.securityContext?.seccompProfile?.type;
  const typeOf = ({ securityContext }: ReturnType<typeof containersOf>[number]) =>
    securityContext?.seccompProfile?.type;
  const isBad = (type: string | undefined): type is string => type !== undefined && !isConfined(type);
  const bad = namesWhere(pod, (container) => isBad(typeOf(container)));
  const silent = own !== undefined && isConfined(own) ? [] : namesWhere(pod, (each) => typeOf(each) === undefined);
  const types = quoteList(sortUnique([own, ...containersOf(pod).map(typeOf)].filter((type) => isBad(type))));
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
            detail: `pod or ${namesText("container", silent)} must set ${member} "RuntimeDefault" or "Localhost"`,
          },
  };
}
