/** The feature gates that `svc controller-manager` reads. */
import type { GateTable } from "../gates.ts";

export const controllerManagerGates: GateTable = {
  AllAlpha: { stage: "ALPHA", default: false, effective: true },
  AllBeta: { stage: "BETA", default: false, effective: true },
};
