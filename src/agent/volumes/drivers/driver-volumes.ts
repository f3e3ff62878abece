/** Volumes of CSI and Flex drivers. */

import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { compareQuantityTexts, parseQuantity, quantityValue } from "../../../api/meta/quantity.ts";
import type { BoundClaim, ClaimSource } from "../claims.ts";
import type { CsiExpansion, CsiRequest, CsiVolumes } from "../csi/csi-volumes.ts";
import { toCsiVolume } from "../csi/volume.ts";
import type { VolumeCondition } from "../csi/volume-health.ts";
import type { FlexVolumes } from "../flex/flex-volumes.ts";
import { toFlexVolume } from "../flex/volume.ts";
import type { VolumePath } from "../volume-path.ts";

export interface DriverVolumesOptions {
  readonly csi: CsiVolumes;
  readonly flex: FlexVolumes;
  readonly claims: Pick<ClaimSource, "updateClaimSize">;
}

export class DriverVolumes {
  readonly #options: DriverVolumesOptions;

  constructor(options: DriverVolumesOptions) {
    this.#options = options;
  }

  async recover(): Promise<void> {
    await this.#options.csi.recover();
  }

  /** The path of a volume that is set up, without calling a driver or the API server. */
  async find(uid: string, name: string): Promise<VolumePath | undefined> {
    const { csi, flex } = this.#options;
    return (await csi.find(uid, name)) ?? (await flex.find(uid, name));
  }

  /** Undefined for a volume whose driver reports no conditions. */
  async readCondition(uid: string, name: string, signal: AbortSignal): Promise<VolumeCondition | undefined> {
    return await this.#options.csi.readCondition(uid, name, signal);
  }

  /** Undefined when no driver provides the volume. Idempotent. */
  async setUp(
    pod: Pod,
    volume: Volume,
    bound: BoundClaim | undefined,
    signal: AbortSignal | undefined,
  ): Promise<VolumePath | undefined> {
    const { csi, flex } = this.#options;
    const request = this.#csiRequest(pod, volume, bound, signal);
    if (request !== undefined) return await csi.setUp(request);
    const flexible = toFlexVolume(pod, volume, bound?.volume);
    if (flexible === undefined) return undefined;
    return await flex.setUp({ pod, name: volume.name, volume: flexible, signal });
  }

  /** Publishes again for drivers with requiresRepublish, and expands volumes. */
  async refresh(
    pod: Pod,
    volume: Volume,
    bound: BoundClaim | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const request = this.#csiRequest(pod, volume, bound, signal);
    if (request !== undefined) await this.#options.csi.refresh(request);
  }

  async tearDown(uid: string): Promise<void> {
    await this.#options.csi.tearDown(uid);
    await this.#options.flex.tearDown(uid);
  }

  #csiRequest(
    pod: Pod,
    volume: Volume,
    bound: BoundClaim | undefined,
    signal: AbortSignal | undefined,
  ): CsiRequest | undefined {
    const found = toCsiVolume(pod, volume, bound?.volume);
    return found && { pod, name: volume.name, volume: found, expansion: bound && this.#findExpansion(bound), signal };
  }

  #findExpansion({ claim, volume }: BoundClaim): CsiExpansion | undefined {
    const has = claim.status?.capacity?.storage;
    const wanted = volume.spec?.capacity?.storage;
    if (has === undefined || wanted === undefined || compareQuantityTexts(has, wanted) >= 0) return undefined;
    const quantity = parseQuantity(wanted);
    if (quantity === undefined) return undefined;
    const onExpanded = async () => await this.#options.claims.updateClaimSize?.(claim, wanted);
    return { bytes: BigInt(quantityValue(quantity)), onExpanded };
  }
}
