/** Decides which pod updates are evaluated: those of fields that are mutable and relevant to security. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";

const POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod";
const CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/";

export function isSignificantUpdate(next: Pod, previous: Pod): boolean {
  const annotation = (pod: Pod, name: string) => pod.metadata?.annotations?.[name] ?? "";
  const differs = (container: Pick<Container, "name" | "image">, before: Pick<Container, "image"> | undefined) => {
    const name = CONTAINER_SECCOMP + container.name;
    return container.image !== before?.image || annotation(next, name) !== annotation(previous, name);
  };
  if (annotation(next, POD_SECCOMP) !== annotation(previous, POD_SECCOMP)) return true;
  for (const list of ["containers", "initContainers"] as const) {
    const [now, before] = [next.spec?.[list] ?? [], previous.spec?.[list] ?? []];
    if (now.length !== before.length || now.some((container, i) => differs(container, before[i]))) return true;
  }
  const existing = new Map((previous.spec?.ephemeralContainers ?? []).map((each) => [each.name, each]));
  return (next.spec?.ephemeralContainers ?? []).some((container) => {
    const before = existing.get(container.name);
    return before === undefined || differs(container, before);
  });
}
