/** The forecast of the running agent, as text for people. */
import type { SignalForecast } from "../eviction/eviction-forecast.ts";
import type { RemovableImage } from "../garbage-collection/image-collector.ts";
import type { Forecast } from "./forecast.ts";

/** Images that are named; the others are counted. */
const NAMED_MAX = 3;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Undefined: no agent answers. */
export function renderForecast(forecast: Forecast | undefined): string {
  if (forecast === undefined) return "Forecast: no agent runs with these settings\n";
  const lines = [
    ...forecast.evictions.map(renderSignal),
    ...renderImages(forecast.images),
    renderContainers(forecast.containers),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const text = lines.map(([name, rest]) => `  ${name.padEnd(width)}  ${rest}\n`);
  return ["Forecast, at the rate of the last minutes:\n", ...text].join("");
}

type Line = readonly [name: string, text: string];

function renderSignal({ signal, pods, reclaimed, ...forecast }: SignalForecast): Line {
  const { available, threshold, graceSeconds, ratePerSecond, inSeconds } = forecast;
  const isBytes = signal.endsWith("available") && signal !== "pid.available";
  const print = (amount: number): string => (isBytes ? formatBytes(amount) : String(Math.round(amount)));
  const falling = ratePerSecond !== undefined && ratePerSecond < 0 ? `, falling by ${print(-ratePerSecond)}/s` : "";
  const first = pods.map(({ namespace, name, used, requested }) => {
    const usage = used === undefined ? "nothing runs" : `uses ${print(used)}, requests ${print(requested)}`;
    return `${namespace}/${name} (${usage})`;
  });
  const removed = [
    ...(reclaimed.length > 0 ? [`unused ${reclaimed.join(" and ")}`] : []),
    first.length > 0 ? `pods ${first.join(", ")}` : "no pod",
  ].join(", then ");
  const grace = graceSeconds > 0 ? ` for ${formatSeconds(graceSeconds)}` : "";
  const when = renderWhen(inSeconds, ratePerSecond);
  return [signal, `${print(available)}${falling}; evicts below ${print(threshold)}${grace}: ${when}; ${removed}`];
}

function renderImages(images: Forecast["images"]): readonly Line[] {
  if (images === undefined) return [];
  const { highPercent, lowPercent, usedPercent, next, aged, bytesLeft, inSeconds, ratePerSecond } = images;
  const bySpace: Line =
    bytesLeft === undefined
      ? ["images", "are not collected for space"]
      : [
          "images",
          `${usedPercent} % of the file system used; collected at ${highPercent} % down to ${lowPercent} %: ` +
            `${renderWhen(inSeconds, ratePerSecond)}; ${listImages(next)}`,
        ];
  const [oldest] = aged;
  if (oldest === undefined) return [bySpace];
  return [bySpace, ["images by age", `${renderWhen(oldest.inSeconds, 0)}; ${listImages(aged)}`]];
}

function listImages(images: readonly RemovableImage[]): string {
  if (images.length === 0) return "no image is unused";
  const named = images
    .slice(0, NAMED_MAX)
    .map(({ id, names, sizeBytes }) => `${names[0] ?? id} (${formatBytes(sizeBytes)})`);
  const rest = images.length - named.length;
  return `${named.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

function renderContainers({ limit, count, inSeconds, next }: Forecast["containers"]): Line {
  if (limit < 0) return ["containers", `${count} exited containers; all are kept`];
  const named = next.slice(0, NAMED_MAX).map(({ name, podUid }) => `${name} of pod ${podUid}`);
  const first = named.length === 0 ? "" : `; ${named.join(", ")}`;
  return ["containers", `${count} exited containers, at most ${limit} are kept: ${renderWhen(inSeconds, 0)}${first}`];
}

function renderWhen(inSeconds: number | undefined, ratePerSecond: number | undefined): string {
  if (inSeconds === 0) return "now";
  if (inSeconds !== undefined) return `in ${formatSeconds(inSeconds)}`;
  return ratePerSecond === undefined ? "the rate is not measured yet" : "not at this rate";
}

function formatSeconds(seconds: number): string {
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return `${Math.round(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${Math.round(seconds / HOUR)} h`;
  return `${Math.round(seconds / DAY)} days`;
}

function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let rest = bytes;
  for (; rest >= 1024 && unit < units.length - 1; unit++) rest /= 1024;
  return `${rest >= 100 || unit === 0 ? Math.round(rest) : rest.toFixed(1)} ${units[unit]}`;
}
