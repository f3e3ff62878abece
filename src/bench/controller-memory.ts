/** What each controller adds to the resident memory of an API server without objects, its code included. */
import { setTimeout as sleep } from "node:timers/promises";
import { controllerNames } from "../controllers/controller-manager.ts";
import type { Figures } from "./figures.ts";
import { memory } from "./process.ts";
import { BenchServer } from "./server.ts";

/** After this time an idle server has collected its garbage. */
const IDLE_MS = 6_000;

export async function measureControllerMemory(figures: Figures, program: readonly string[]): Promise<void> {
  const none = await measure(program, "");
  figures.add("Resident memory without controllers", none, "MiB");
  for (const name of controllerNames) {
    figures.add(`Resident memory that ${name} adds`, (await measure(program, name)) - none, "MiB");
  }
  figures.add("Resident memory that all controllers add", (await measure(program, "*")) - none, "MiB");
}

async function measure(program: readonly string[], controllers: string): Promise<number> {
  await using server = await BenchServer.create(program);
  await server.start(...(controllers === "" ? [] : [`--embedded-controllers=${controllers}`]));
  await sleep(IDLE_MS);
  return memory(server.pid).rss;
}
