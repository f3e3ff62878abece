/** One CSI driver of this node, by its socket. */

import type { Infer } from "../../../schema/schema.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { UnixChannel } from "../../plugins/unix-channel.ts";
import { type NodeInfo, nodeService, type VolumeStats } from "./messages.ts";

/** As long as Kubernetes waits for an answer. */
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

  /** Names of `NodeServiceCapability.RPC.Type`, asked for once: a driver that changes registers anew. */
  async hasCapability(capability: string, signal?: AbortSignal): Promise<boolean> {
    this.#capabilities ??= this.#readCapabilities(signal);
    const asked = this.#capabilities;
    try {
      return (await asked).has(capability);
    } catch (error) {
      if (this.#capabilities === asked) this.#capabilities = undefined;
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

  /** The volume's new size in bytes, if the driver says. */
  async expand(request: Request<"expandVolume">, signal?: AbortSignal): Promise<bigint | undefined> {
    const answer = await this.#channel.call(nodeService.expandVolume, request, { timeoutMs: CALL_MS, signal });
    return answer.capacityBytes;
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
