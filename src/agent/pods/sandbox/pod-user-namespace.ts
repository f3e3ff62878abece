import type { UserNamespace } from "../../runtime/cri/shared.ts";
import type { PodContext } from "../pod-context.ts";
import { podUid } from "../pod-fields.ts";

const FIELD = "can't set `spec.hostUsers: false`";

/** The user namespace of a pod with `hostUsers: false`; undefined for others. Rejects with Kubernetes' text. */
export async function resolveUserNamespace(pod: PodContext): Promise<UserNamespace | undefined> {
  const { userNamespaces } = pod.services;
  if (pod.pod.spec?.hostUsers !== false) return undefined;
  const { runtimeHandlers = [] } = await pod.services.runtime.status({}, pod.signal);
  const handler = await pod.services.getRuntimeHandler(pod.pod);
  const found = runtimeHandlers.find(({ name = "" }) => name === handler);
  if (found?.features?.userNamespaces === true) {
    // Kubernetes ignores the field then, and the pod would have the node's users.
    if (userNamespaces === undefined) throw new Error(`${FIELD}, the feature gate UserNamespacesSupport is off`);
    return await userNamespaces.allocate(podUid(pod.pod));
  }
  const subject = handler === "" ? "runtime" : `RuntimeClass handler ${JSON.stringify(handler)}`;
  // Older runtimes report no handlers.
  const isUnknown = found === undefined && runtimeHandlers.length > 0;
  const why = isUnknown ? `: the handler ${JSON.stringify(handler)} is not known` : "";
  throw new Error(`${FIELD}, ${subject} does not support user namespaces${why}`);
}
