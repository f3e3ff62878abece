import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { dayOf, LEGACY_TRACKING, startOfDay, TRACKED_SINCE } from "../../auth/service-account/legacy-tokens.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Clock } from "../../std/time/clock.ts";
import { ensure, systemScope } from "./ensure.ts";

/**
 * Records in a ConfigMap the day since which the use of legacy tokens is tracked. An invalid or future day is
 * replaced: it would keep unused tokens forever or delete used ones.
 */
export async function ensureLegacyTokenTracking(
  registries: Registries,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const now = clock.now();
  const data = { [TRACKED_SINCE]: dayOf(now) };
  const scope = systemScope(LEGACY_TRACKING.namespace, signal);
  const correct = (found: ConfigMap): ConfigMap | undefined => {
    const since = startOfDay(found.data?.[TRACKED_SINCE]);
    return since !== undefined && since <= now ? undefined : { ...found, data: { ...found.data, ...data } };
  };
  const wanted = { metadata: LEGACY_TRACKING, data };
  await ensure(registries.of(configMapKind), scope, wanted, correct);
}
