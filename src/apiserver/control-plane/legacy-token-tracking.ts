import { configMapKind } from "../../api/core/config-map/kind.ts";
import { dayOf, LEGACY_TRACKING, startOfDay, TRACKED_SINCE } from "../../auth/service-account/legacy-tokens.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Clock } from "../../std/time/clock.ts";
import { ensure, systemScope } from "./ensure.ts";

/**
 * Tells since which day it is written down when tokens in secrets were used: from the first start on. A day that is
 * none, or yet to come, would keep unused tokens for ever or take away used ones.
 */
export async function ensureLegacyTokenTracking(registries: Registries, clock: Clock, signal: AbortSignal): Promise<void> {
  const now = clock.now();
  const data = { [TRACKED_SINCE]: dayOf(now) };
  const scope = systemScope(LEGACY_TRACKING.namespace, signal);
  await ensure(registries.of(configMapKind), scope, { metadata: LEGACY_TRACKING, data }, (found) => {
    const since = startOfDay(found.data?.[TRACKED_SINCE]);
    return since !== undefined && since <= now ? undefined : { ...found, data: { ...found.data, ...data } };
  });
}
