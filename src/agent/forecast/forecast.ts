/** What the agent would evict or collect next, and when, at the rate of the last minutes. */

import type { SignalForecast } from "../eviction/eviction-forecast.ts";
import type { ContainerForecast } from "../garbage-collection/container-collector.ts";
import type { ImageForecast } from "../garbage-collection/image-collector.ts";
import { type Rate, secondsUntil } from "./rate-history.ts";

export interface Forecast {
  /** The version of this format. */
  readonly version: 1;
  readonly evictions: readonly SignalForecast[];
  readonly images:
    | (ImageForecast & { readonly ratePerSecond: number | undefined; readonly inSeconds?: number })
    | undefined;
  readonly containers: ContainerForecast;
}

export interface ForecastSources {
  readonly eviction: {
    forecast(): Promise<readonly SignalForecast[]>;
    /** How fast the free space on the file system of images changes. */
    readonly imageSpaceRate: Rate | undefined;
  };
  readonly images: { forecast(): Promise<ImageForecast> };
  readonly containers: { forecast(): ContainerForecast };
}

export async function makeForecast({ eviction, images, containers }: ForecastSources): Promise<Forecast> {
  const ofImages = await images.forecast().catch(() => undefined);
  const rate = eviction.imageSpaceRate;
  const inSeconds = ofImages?.bytesLeft === undefined ? undefined : secondsUntil(ofImages.bytesLeft, rate);
  return {
    version: 1,
    evictions: await eviction.forecast(),
    images: ofImages && {
      ...ofImages,
      ratePerSecond: rate?.perSecond,
      ...(inSeconds === undefined ? {} : { inSeconds }),
    },
    containers: containers.forecast(),
  };
}
