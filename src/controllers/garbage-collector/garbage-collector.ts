import { aborted } from "../../std/aborted.ts";
import type { ControllerDeps } from "../controller.ts";

export async function runGarbageCollector({ signal }: ControllerDeps): Promise<void> {
  await aborted(signal);
}
