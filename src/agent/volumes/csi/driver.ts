/** Client of one CSI driver on this node. */

import type { Infer } from "../../../schema/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { UnixChannel } from "../../plugins/unix-channel.ts";
import { type NodeInfo, nodeService, type VolumeStats } from "./messages.ts";

/** kubelet's timeout. */
const CALL_MS = 120_000;

type Service = typeof nodeService;
type Request<M extends keyof Service> = Infer<Service[M]["request"]>;

export class CsiDriver implements Disposable {
  readonly name: string;
  readonly endpoint: string;
  readonly #channel: UnixChannel;
  #capabilities: Promise<ReadonlySet<string>> | undefined;

  constructor(name: string, endpoint: string, clock: Clock) {
    this.name = name;
    this.endpoint = endpoint;
    this.#channel = new UnixChannel(endpoint, clock);
  }

  async getInfo(signal?: AbortSignal): Promise<NodeInfo> {
    return await this.#channel.call(nodeService.getInfo, {}, { timeoutMs: CALL_MS, signal });
  }

  /** By `NodeServiceCapability.RPC.Type`; read once, since a driver that changes registers again. */
  async hasCapability(capability: string, signal?: AbortSignal): Promise<boolean> {
    this.#capabilities ??= this.#readCapabilities(signal);
    const capabilities = this.#capabilities;
    try {
      return (await capabilities).has(capability);
    } catch (error) {
      if (this.#capabilities === capabilities) this.#capabilities = undefined;
      throw error;
    }
  }

  async stage(request: Request<"stageVolume">, signal?: AbortSignal): Promise<void> {
    await this.#channel.call(nodeService.stageVolume, request, { timeoutMs: CALL_MS, signal });
  }

  async unstage(request: Request<"unstageVolume">): Promise<void> {
    await this.#channel.call(nodeService.unstageVolume, request, { timeoutMs: CALL_MS });
  }

  async publish(request: Request<"publishVolume">, signal?: AbortSignal): Promise<void> {
    await this.#channel.call(nodeService.publishVolume, request, { timeoutMs: CALL_MS, signal });
  }

  async unpublish(request: Request<"unpublishVolume">): Promise<void> {
    await this.#channel.call(nodeService.unpublishVolume, request, { timeoutMs: CALL_MS });
  }

  async stats(request: Request<"getVolumeStats">, signal?: AbortSignal): Promise<VolumeStats> {
    return await this.#channel.call(nodeService.getVolumeStats, request, { timeoutMs: CALL_MS, signal });
  }

  /** The volume's new size in bytes, if the driver reports it. */
  async expand(request: Request<"expandVolume">, signal?: AbortSignal): Promise<bigint | undefined> {
    const response = await this.#channel.call(nodeService.expandVolume, request, { timeoutMs: CALL_MS, signal });
    return response.capacityBytes;
  }

  [Symbol.dispose](): void {
    this.#channel[Symbol.dispose]();
  }

  async #readCapabilities(signal: AbortSignal | undefined): Promise<ReadonlySet<string>> {
    const limits = { timeoutMs: CALL_MS, signal };
    const { capabilities = [] } = await this.#channel.call(nodeService.getCapabilities, {}, limits);
    return new Set(capabilities.flatMap(({ rpc }) => (rpc?.type === undefined ? [] : [rpc.type])));
  }
}
