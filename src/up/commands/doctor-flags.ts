/** The flags of `svc doctor`: its own, and those of `svc up` that have an effect. */
import { doctorFlags, summaryOf } from "../../agent/doctor/flags.ts";
import type { FlagTable } from "../../flags/flag.ts";
import type { ReferencePage } from "../../flags/reference.ts";
import { upFlags } from "../flags.ts";

const upTable: FlagTable = upFlags;

export const doctorProgram: ReferencePage = {
  name: "svc doctor",
  summary: summaryOf("svc up"),
  flags: {
    ...doctorFlags,
    ...Object.fromEntries(Object.entries(upTable).filter(([, { inert }]) => inert === undefined)),
  },
};
