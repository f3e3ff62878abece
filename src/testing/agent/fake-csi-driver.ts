/** A CSI driver on a socket, whose volumes are directories, or a device of the test. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import { registration } from "../../agent/plugins/messages.ts";
import { nodeService } from "../../agent/volumes/csi/messages.ts";
import type { Mounter } from "../../agent/volumes/mount/mounter.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";

export interface FakeDriverOptions {
  readonly name: string;
  readonly socket: string;
  /** Directory of the volumes' contents, by handle. */
  readonly storage: string;
  readonly mounter: Mounter;
  readonly capabilities: readonly string[];
  /** Published for block volumes. */
  readonly device?: string;
  readonly topology?: Readonly<Record<string, string>>;
  /** `["1.0.0"]` when absent. */
  readonly versions?: readonly string[];
}

export interface Call {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: requests differ, and tests match parts of them
  readonly request: any;
}

export interface FakeDriver extends AsyncDisposable {
  readonly calls: Call[];
  /** Methods that fail, with their errors. */
  readonly failures: Map<string, { readonly code: grpc.status; readonly details: string }>;
  /** What the driver reports about all volumes. */
  condition: { readonly abnormal: boolean; readonly message: string };
  /** Names of the methods called that change volumes. */
  readonly volumeCalls: readonly string[];
}

type Handler = (request: Call["request"]) => Promise<unknown>;

export async function startFakeDriver(options: FakeDriverOptions): Promise<FakeDriver> {
  const calls: Call[] = [];
  const failing: FakeDriver["failures"] = new Map();
  let condition: FakeDriver["condition"] = { abnormal: false, message: "" };
  const server = new grpc.Server();
  const { name, socket, mounter, topology } = options;
  const serve = (methods: Readonly<Record<string, GrpcMethod>>, handle: Readonly<Record<string, Handler>>): void => {
    const definitions: Record<string, grpc.MethodDefinition<object, object>> = {};
    const handlers: Record<string, grpc.handleUnaryCall<unknown, unknown>> = {};
    for (const [method, { path, request, response }] of Object.entries(methods)) {
      definitions[method] = defineUnaryMethod(path, request, response);
      handlers[method] = ({ request: received }, done) => {
        calls.push({ method, request: received });
        const failure = failing.get(method);
        if (failure !== undefined) return done(failure);
        const work = handle[method]?.(received) ?? Promise.resolve({});
        work
          .then((value) => done(null, value))
          .catch((error: Error) => done({ code: grpc.status.INTERNAL, details: error.message }));
      };
    }
    server.addService(definitions, handlers);
  };
  const unmount: Handler = async ({ targetPath, stagingTargetPath }) => {
    for (const point of await mounter.listMountPoints(targetPath ?? stagingTargetPath)) await mounter.unmount(point);
    return {};
  };
  serve(nodeService, {
    getInfo: async () => ({
      nodeId: `${name}-id`,
      maxVolumesPerNode: 7n,
      ...(topology === undefined ? {} : { accessibleTopology: { segments: topology } }),
    }),
    getCapabilities: async () => ({ capabilities: options.capabilities.map((type) => ({ rpc: { type } })) }),
    async stageVolume({ volumeId, stagingTargetPath, volumeCapability }) {
      await mkdir(join(options.storage, volumeId), { recursive: true });
      if (volumeCapability.mount !== undefined) await mounter.bind(join(options.storage, volumeId), stagingTargetPath);
      return {};
    },
    async publishVolume({ volumeId, stagingTargetPath, targetPath, volumeCapability }) {
      if ((await mounter.listMountPoints(targetPath)).includes(targetPath)) return {};
      if (volumeCapability.block !== undefined) {
        await writeFile(targetPath, "");
        await mounter.bind(options.device ?? "/dev/null", targetPath);
        return {};
      }
      await mkdir(join(options.storage, volumeId), { recursive: true });
      await mkdir(targetPath, { recursive: true });
      await mounter.bind(stagingTargetPath || join(options.storage, volumeId), targetPath);
      return {};
    },
    unpublishVolume: unmount,
    unstageVolume: unmount,
    getVolumeStats: async () => ({ volumeCondition: condition }),
    expandVolume: async ({ capacityRange }) => ({ capacityBytes: capacityRange.requiredBytes }),
  });
  serve(registration, {
    getInfo: async () => ({ type: "CSIPlugin", name, supportedVersions: options.versions ?? ["1.0.0"] }),
  });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socket}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    calls,
    failures: failing,
    get condition() {
      return condition;
    },
    set condition(next) {
      condition = next;
    },
    get volumeCalls() {
      return calls.map(({ method }) => method).filter((method) => /Volume$/.test(method));
    },
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.tryShutdown(() => resolve())),
  };
}
