/** Starts one controller with a given client, for tests. */
import type { Test } from "tap";
import { builtinKinds } from "../../api/builtin.ts";
import type { Client } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import type { ControllerDeps } from "../../controllers/controller.ts";
import { defaultControllerOptions } from "../../controllers/controller-options.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";

/** The controller stops with the test. */
export function startController(
  t: Pick<Test, "teardown">,
  run: (deps: ControllerDeps) => Promise<void>,
  client: Client,
  clock: Clock,
): void {
  const stop = new AbortController();
  const shared = { clock, random: seededRandom(1), log: silentLogger };
  const informers = createSharedInformers({ client, ...shared }, stop.signal);
  const options = defaultControllerOptions;
  const running = run({
    ...shared,
    client,
    observer: client,
    informers,
    kinds: builtinKinds,
    options,
    signal: stop.signal,
  });
  t.teardown(async () => {
    stop.abort();
    await running;
    await informers[Symbol.asyncDispose]();
  });
}
