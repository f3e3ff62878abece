/** A driver of resource claims on real sockets: it registers with an agent, and records what it prepares. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { registration } from "../../agent/plugins/messages.ts";
import { serveUnix } from "../../agent/plugins/unix-server.ts";
import { type DriverClaim, type DriverDevice, driverServices } from "../../agent/resource-managers/claims/messages.ts";

export interface FakeClaimDriver extends AsyncDisposable {
  /** `prepare NAME`, `unprepare NAME` and `registered`. */
  readonly calls: string[];
}

export interface FakeClaimDriverOptions {
  readonly name: string;
  readonly rootDir: string;
  readonly prepare: (claim: DriverClaim) => Promise<readonly DriverDevice[]>;
  readonly unprepare?: (claim: DriverClaim) => Promise<void>;
}

const VERSION = "v1beta1.DRAPlugin";

export async function startFakeClaimDriver(options: FakeClaimDriverOptions): Promise<FakeClaimDriver> {
  const { name, rootDir, prepare } = options;
  const calls: string[] = [];
  const service = driverServices[VERSION];
  if (service === undefined) throw new Error("no such version");
  const [plugins, registry] = ["plugins", "plugins_registry"].map((each) => join(rootDir, each)) as [string, string];
  await Promise.all([plugins, registry].map((each) => mkdir(each, { recursive: true })));
  const endpoint = join(plugins, "dra.sock");
  const answer =
    (method: string, make: (claim: DriverClaim) => Promise<object>) =>
    async ({ claims }: { claims: readonly DriverClaim[] }) => {
      calls.push(...claims.map((claim) => `${method} ${claim.name}`));
      const entries = claims.map(async (claim) => [claim.uid, await make(claim)] as const);
      return { claims: Object.fromEntries(await Promise.all(entries)) };
    };
  const stack = new AsyncDisposableStack();
  stack.use(
    await serveUnix(endpoint, service, {
      prepare: answer("prepare", async (claim) => ({ devices: await prepare(claim) })),
      unprepare: answer("unprepare", async (claim) => {
        await options.unprepare?.(claim);
        return {};
      }),
    }),
  );
  stack.use(
    await serveUnix(join(registry, "dra.sock"), registration, {
      getInfo: async () => ({ type: "DRAPlugin", name, endpoint, supportedVersions: [VERSION] }),
      notifyRegistrationStatus: async () => {
        calls.push("registered");
        return {};
      },
    }),
  );
  return { calls, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
