/** A device plugin on a socket, as the examples of its API: it registers, streams its devices and allocates them. */

import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import { UnixChannel } from "../../agent/plugins/unix-channel.ts";
import {
  type ContainerAllocateResponse,
  type DevicePluginOptions,
  devicePlugin,
  deviceRegistration,
  type PluginDevice,
} from "../../agent/resource-managers/devices/messages.ts";
import type { GrpcMethod } from "../../schema/protobuf/grpc-method.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import { systemClock } from "../../std/time/clock.ts";

export interface FakePluginOptions {
  readonly directory: string;
  readonly resource: string;
  readonly devices: readonly PluginDevice[];
  readonly options?: DevicePluginOptions;
  /** The answer to an allocation; default: a variable with the devices. */
  readonly allocate?: (ids: readonly string[]) => ContainerAllocateResponse;
  /** Before the answer; a rejection is that of the call. */
  readonly onAllocate?: (ids: readonly string[]) => Promise<void>;
  readonly prefer?: (available: readonly string[], mustInclude: readonly string[], count: number) => readonly string[];
}

export interface FakeDevicePlugin extends AsyncDisposable {
  /** Method and device IDs. */
  readonly calls: string[];
  /** Streams the devices to the agent. */
  update(devices: readonly PluginDevice[]): void;
  /** Rejects with the agent's error. */
  register(overrides?: { readonly version?: string; readonly resourceName?: string }): Promise<void>;
}

/** Devices `prefix0`, `prefix1`, … of a node; without one, they belong to none. */
export function makeDevices(prefix: string, count: number, node?: number): readonly PluginDevice[] {
  const topology = node === undefined ? {} : { topology: { nodes: [{ id: BigInt(node) }] } };
  return Array.from({ length: count }, (_, index) => ({ id: `${prefix}${index}`, health: "Healthy", ...topology }));
}

/** Serves; the test registers. */
export async function startFakeDevicePlugin(options: FakePluginOptions): Promise<FakeDevicePlugin> {
  const { directory, resource } = options;
  const calls: string[] = [];
  const streams = new Set<grpc.ServerWritableStream<unknown, unknown>>();
  let { devices } = options;
  const server = new grpc.Server();
  const unary = <M extends GrpcMethod>({ path, request, response }: M) => defineUnaryMethod(path, request, response);
  const { getOptions, listAndWatch, getPreferredAllocation, allocate, preStartContainer } = devicePlugin;
  const handle =
    (respond: (request: never) => unknown): grpc.handleUnaryCall<unknown, unknown> =>
    async (call, done) => {
      try {
        done(null, await respond(call.request as never));
      } catch (error) {
        done({ code: grpc.status.UNKNOWN, details: error instanceof Error ? error.message : String(error) });
      }
    };
  server.addService(
    {
      getOptions: unary(getOptions),
      listAndWatch: { ...unary(listAndWatch), responseStream: true },
      getPreferredAllocation: unary(getPreferredAllocation),
      allocate: unary(allocate),
      preStartContainer: unary(preStartContainer),
    },
    {
      getOptions: handle(() => options.options ?? {}),
      listAndWatch: (stream: grpc.ServerWritableStream<unknown, unknown>) => {
        streams.add(stream);
        stream.on("cancelled", () => streams.delete(stream));
        stream.write({ devices });
      },
      getPreferredAllocation: handle(
        ({
          containerRequests: [first],
        }: {
          containerRequests: readonly {
            availableDeviceIds?: readonly string[];
            mustIncludeDeviceIds?: readonly string[];
            allocationSize?: number;
          }[];
        }) => {
          const { availableDeviceIds = [], mustIncludeDeviceIds = [], allocationSize = 0 } = first ?? {};
          const deviceIds = options.prefer?.(availableDeviceIds, mustIncludeDeviceIds, allocationSize) ?? [];
          return { containerResponses: [{ deviceIds }] };
        },
      ),
      allocate: handle(
        async ({ containerRequests: [first] }: { containerRequests: readonly { devicesIds: readonly string[] }[] }) => {
          const ids = first?.devicesIds ?? [];
          calls.push(`allocate ${ids.join(",")}`);
          await options.onAllocate?.(ids);
          return { containerResponses: [options.allocate?.(ids) ?? { envs: { DEVICES: ids.join(",") } }] };
        },
      ),
      preStartContainer: handle(({ devicesIds }: { devicesIds: readonly string[] }) => {
        calls.push(`preStart ${devicesIds.join(",")}`);
        return {};
      }),
    },
  );
  const name = `${resource.replaceAll("/", "-")}.sock`;
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${join(directory, name)}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return {
    calls,
    update(next) {
      devices = next;
      for (const stream of streams) stream.write({ devices });
    },
    async register(overrides = {}) {
      using channel = new UnixChannel(join(directory, "kubelet.sock"), systemClock);
      const request = { version: "v1beta1", endpoint: name, resourceName: resource, ...overrides };
      await channel.call(deviceRegistration.register, request, { timeoutMs: 5_000 });
    },
    async [Symbol.asyncDispose]() {
      server.forceShutdown();
    },
  };
}
