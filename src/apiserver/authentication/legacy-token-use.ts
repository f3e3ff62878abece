/** Records the use of legacy tokens in a label of their secrets, once a day, so that unused ones can be deleted. */
import { secretKind } from "../../api/core/secret/kind.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { LAST_USED_LABEL } from "../../auth/service-account/legacy-tokens.ts";
import type { Registries } from "../../registry/registries.ts";
import { update } from "../../registry/update.ts";
import type { Logger } from "../../std/log/logger.ts";
import { ignoreConflict, systemScope } from "../control-plane/ensure.ts";

/** The maximum number of concurrent writes; further uses are recorded the next time. */
const PENDING_MAX = 32;

export function createLegacyTokenUseRecorder(
  registries: Registries,
  log: Logger,
  signal: AbortSignal,
): (secret: ApiObject, day: string) => void {
  const pendingUids = new Set<string>();
  return (secret, day) => {
    const { name = "", namespace = "", labels, uid = "" } = secret.metadata ?? {};
    if (pendingUids.has(uid) || pendingUids.size >= PENDING_MAX || signal.aborted) return;
    pendingUids.add(uid);
    const used: Secret = { ...secret, metadata: { ...secret.metadata, labels: { ...labels, [LAST_USED_LABEL]: day } } };
    void ignoreConflict(update(registries.of(secretKind), systemScope(namespace, signal), name, used))
      .catch((error: unknown) => log.error("Cannot record the use of a token", error, { namespace, secret: name }))
      .finally(() => pendingUids.delete(uid));
  };
}
