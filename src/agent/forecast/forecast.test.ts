import { mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { SignalForecast } from "../eviction/eviction-forecast.ts";
import type { ContainerForecast } from "../garbage-collection/container-collector.ts";
import type { ImageForecast } from "../garbage-collection/image-collector.ts";
import { type Forecast, makeForecast } from "./forecast.ts";
import { forecastSocket, readForecast, serveForecast } from "./forecast-socket.ts";
import { renderForecast } from "./render-forecast.ts";

const MI = 2 ** 20;
const GI = 2 ** 30;

const memory: SignalForecast = {
  signal: "memory.available",
  condition: "MemoryPressure",
  available: 2 * GI,
  capacity: 8 * GI,
  threshold: 100 * MI,
  graceSeconds: 0,
  ratePerSecond: -MI,
  inSeconds: 1949,
  reclaimed: [],
  pods: [{ namespace: "default", name: "web", priority: 0, used: 800 * MI, requested: 100 * MI }],
};
const images: ImageForecast = {
  highPercent: 85,
  lowPercent: 80,
  usedPercent: 60,
  capacityBytes: 10 * GI,
  availableBytes: 4 * GI,
  bytesLeft: 2 * GI,
  next: [{ id: "sha256:1", names: ["old:1"], sizeBytes: 120 * MI, inSeconds: 0 }],
  aged: [],
};
const containers: ContainerForecast = {
  limit: 10,
  count: 12,
  inSeconds: 0,
  next: [{ id: "c1", name: "c", podUid: "u" }],
};

const make = (change: { readonly images?: ImageForecast; readonly signals?: readonly SignalForecast[] } = {}) =>
  makeForecast({
    eviction: { forecast: async () => change.signals ?? [memory], imageSpaceRate: { perSecond: -MI, seconds: 60 } },
    images: { forecast: async () => change.images ?? images },
    containers: { forecast: () => containers },
  });

t.test("makeForecast() has the time until images are collected", async (t) => {
  t.match(await make(), { version: 1, images: { ratePerSecond: -MI, inSeconds: 2048 } });
  const failing = { forecast: () => Promise.reject(new Error("no runtime")) };
  const eviction = { forecast: async () => [], imageSpaceRate: undefined };
  const forecast = await makeForecast({ eviction, images: failing, containers: { forecast: () => containers } });
  t.equal(forecast.images, undefined);
});

t.test("renderForecast() has a line for each threshold, for images and for containers", async (t) => {
  t.equal(
    renderForecast(await make()),
    [
      "Forecast, at the rate of the last minutes:",
      "  memory.available  2.0 GiB, falling by 1.0 MiB/s; evicts below 100 MiB: in 32 min; pods default/web (uses 800 MiB, requests 100 MiB)",
      "  images            60 % of the file system used; collected at 85 % down to 80 %: in 34 min; old:1 (120 MiB)",
      "  containers        12 exited containers, at most 10 are kept: now; c of pod u",
      "",
    ].join("\n"),
  );
  const soft = { ...memory, graceSeconds: 90, ratePerSecond: undefined, inSeconds: undefined, pods: [] } as const;
  const processes = { ...memory, signal: "pid.available", available: 7, threshold: 9, inSeconds: 0 } as const;
  const aged = [{ ...images.next[0], inSeconds: 200_000 }] as ImageForecast["aged"];
  const text = renderForecast(
    await make({ signals: [soft, processes], images: { ...images, bytesLeft: undefined, next: [], aged } }),
  );
  t.match(text, /memory\.available +2\.0 GiB; evicts below 100 MiB for 2 min: the rate is not measured yet; no pod\n/);
  t.match(text, /pid\.available +7, falling by .*; evicts below 9: now; pods default\/web/);
  t.match(text, /images +are not collected for space\n +images by age +in 2 days; old:1/);
  t.equal(renderForecast(undefined), "Forecast: no agent runs with these settings\n");
});

t.test("serveForecast() answers root only, and readForecast() rejects what is no forecast", async (t) => {
  // Paths of sockets are short.
  const directory = mkdtempSync(join(tmpdir(), "svc-forecast-"));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const path = forecastSocket(directory);
  await t.rejects(readForecast(path, 1000), /ENOENT/);
  let answer: () => Promise<Forecast> = make;
  {
    await using _server = await serveForecast(path, () => answer());
    t.equal(statSync(path).mode & 0o777, 0o600);
    t.match(await readForecast(path, 1000), { version: 1, evictions: [{ signal: "memory.available" }] });
    answer = () => Promise.reject(new Error("no figures"));
    await t.rejects(readForecast(path, 1000), /no figures/);
    answer = () => new Promise(() => {});
    await t.rejects(readForecast(path, 50), /no answer in time/);
  }
  await t.rejects(readForecast(path, 1000), /ENOENT/, "the socket is removed");
  const other = join(directory, "other.sock");
  const server = createServer((socket) => socket.end('{"version":2}')).listen(other);
  t.teardown(() => server.close());
  await t.rejects(readForecast(other, 1000), /another version/);
  await t.rejects(serveForecast(`/${"x".repeat(200)}`, make), /more than 107 bytes/);
});
