/** The connection to one device plugin: the stream of its devices, and calls. */
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { UnixChannel } from "../../plugins/unix-channel.ts";
import {
  type ContainerAllocateResponse,
  type DevicePluginOptions,
  devicePlugin,
  type PluginDevice,
} from "./messages.ts";

export interface DevicePluginLink {
  readonly resource: string;
  readonly socket: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onDevices: (devices: readonly PluginDevice[]) => void;
  /** The stream has ended. */
  readonly onEnd: () => void;
}

/** Kubernetes' timeout of a call of the plugin. */
const CALL_MS = 10_000;
const PRE_START_MS = 30_000;
/** Further devices of one plugin are ignored. */
const DEVICES_MAX = 10_000;

export class DevicePlugin implements Disposable {
  readonly options: DevicePluginOptions;
  readonly #channel: UnixChannel;
  readonly #stop = new AbortController();

  private constructor(channel: UnixChannel, options: DevicePluginOptions) {
    this.#channel = channel;
    this.options = options;
  }

  /** Rejects when the plugin does not answer. */
  static async connect(link: DevicePluginLink): Promise<DevicePlugin> {
    const channel = new UnixChannel(link.socket, link.clock);
    try {
      const options = await channel.call(devicePlugin.getOptions, {}, { timeoutMs: CALL_MS });
      const plugin = new DevicePlugin(channel, options);
      plugin.#watch(link);
      return plugin;
    } catch (error) {
      channel[Symbol.dispose]();
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`failed to get device plugin options: ${text}`, { cause: error });
    }
  }

  /** Rejects with the plugin's error, or when it returns nothing. */
  async allocate(ids: readonly string[]): Promise<ContainerAllocateResponse> {
    const request = { containerRequests: [{ devicesIds: ids }] };
    const { containerResponses = [] } = await this.#channel.call(devicePlugin.allocate, request, {
      timeoutMs: CALL_MS,
    });
    const [response] = containerResponses;
    if (response === undefined) throw new Error("no containers return in allocation response");
    return response;
  }

  /** The devices that the plugin prefers of those available; empty: it has no preference. */
  async getPreferred(
    available: readonly string[],
    mustInclude: readonly string[],
    count: number,
  ): Promise<readonly string[]> {
    if (this.options.getPreferredAllocationAvailable !== true) return [];
    const request = {
      containerRequests: [{ availableDeviceIds: available, mustIncludeDeviceIds: mustInclude, allocationSize: count }],
    };
    try {
      const response = await this.#channel.call(devicePlugin.getPreferredAllocation, request, { timeoutMs: CALL_MS });
      return response.containerResponses?.[0]?.deviceIds ?? [];
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${text}`, { cause: error });
    }
  }

  async preStart(ids: readonly string[]): Promise<void> {
    if (this.options.preStartRequired !== true) return;
    try {
      await this.#channel.call(devicePlugin.preStartContainer, { devicesIds: ids }, { timeoutMs: PRE_START_MS });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${text}`, { cause: error });
    }
  }

  [Symbol.dispose](): void {
    this.#stop.abort(new Error("the plugin is disconnected"));
    this.#channel[Symbol.dispose]();
  }

  #watch({ resource, log, onDevices, onEnd }: DevicePluginLink): void {
    const { signal } = this.#stop;
    const onResponse = ({ devices = [] }: { readonly devices?: readonly PluginDevice[] | undefined }): void => {
      if (devices.length > DEVICES_MAX) log.warn("Too many devices: ignoring the others", { resource });
      onDevices(devices.slice(0, DEVICES_MAX));
    };
    void this.#channel
      .stream(devicePlugin.listAndWatch, {}, onResponse, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn("ListAndWatch ended unexpectedly", { resource, error: String(error) });
      })
      .then(() => {
        if (!signal.aborted) onEnd();
      });
  }
}
