/** The programs of the one file, as completion and the reference pages list them. */
import { agentProgram } from "../../agent/flags.ts";
import { apiserverProgram } from "../../apiserver/flags/flags.ts";
import type { CompletedProgram } from "../../flags/completion.ts";
import type { ReferencePage } from "../../flags/reference.ts";
import { upProgram } from "../flags.ts";
import { tokenProgram } from "./token-flags.ts";

export const programs: readonly (CompletedProgram & ReferencePage)[] = [
  listed("up", upProgram),
  listed("apiserver", apiserverProgram),
  listed("agent", agentProgram),
  { ...listed("token", tokenProgram), verbs: ["create"] },
];

function listed(word: string, { name, summary, flags, gates }: ReferencePage): CompletedProgram & ReferencePage {
  return { word, name, summary, flags, ...(gates === undefined ? {} : { gates }) };
}
