/** From the start of the process to the first response. */
import type { Figures } from "./figures.ts";
import { quantile } from "./load.ts";
import { cpuMs } from "./process.ts";
import { BenchServer } from "./server.ts";

const WARM_STARTS = 5;

export async function measureStart(figures: Figures, program: readonly string[]): Promise<void> {
  await using server = await BenchServer.create(program);
  figures.add("apiserver: start to ready, first time (keys made)", await server.start(), "ms");
  const times: number[] = [];
  const cpu: number[] = [];
  for (let i = 0; i < WARM_STARTS; i++) {
    await server.stop();
    times.push(await server.start());
    cpu.push(cpuMs(server.pid));
  }
  figures.add("apiserver: start to ready, warm", quantile(times, 0.5), "ms");
  figures.add("  CPU time until then", quantile(cpu, 0.5), "ms");
  await server.stop();
  figures.add(
    "apiserver with all controllers: start to ready, warm",
    await server.start("--embedded-controllers=*"),
    "ms",
  );
}
