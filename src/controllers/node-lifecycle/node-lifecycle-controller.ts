import { aborted } from "../../std/aborted.ts";
import type { ControllerDeps } from "../controller.ts";

export async function runNodeLifecycle({ signal }: ControllerDeps): Promise<void> {
  await aborted(signal);
}
