/** Serves the forecast of evictions and collections to doctor. */
import type { EvictionManager } from "../eviction/eviction-manager.ts";
import { makeForecast } from "../forecast/forecast.ts";
import { forecastSocket, serveForecast } from "../forecast/forecast-socket.ts";
import type { Foundation } from "./foundation.ts";
import type { GarbageCollectors } from "./garbage-collectors.ts";

interface ForecastParts {
  readonly garbage: GarbageCollectors;
  readonly eviction: EvictionManager;
}

/** The agent works without it. */
export async function openForecast(
  { config, log, stack }: Foundation,
  { garbage, eviction }: ForecastParts,
): Promise<void> {
  try {
    const compute = () => makeForecast({ eviction, ...garbage });
    stack.use(await serveForecast(forecastSocket(config.rootDir), compute));
  } catch (error) {
    log.warn("Cannot serve the forecast", { error: error instanceof Error ? error.message : String(error) });
  }
}
