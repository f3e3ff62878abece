/** The programs that completion and the reference pages list. */
import { agentProgram } from "../../agent/flags.ts";
import { apiserverProgram } from "../../apiserver/flags/flags.ts";
import { controllerManagerProgram } from "../../controller-manager/flags.ts";
import type { CommandUsage } from "../../flags/commands.ts";
import type { CompletedProgram } from "../../flags/completion.ts";
import type { ReferencePage } from "../../flags/reference.ts";
import { proxyProgram } from "../../proxy/command/flags.ts";
import { schedulerProgram } from "../../scheduler/flags.ts";
import { upProgram } from "../flags.ts";
import { doctorProgram } from "./doctor-flags.ts";
import { kvstoreProgram } from "./kvstore-flags.ts";
import { tokenProgram } from "./token-flags.ts";
import { webhooksProgram } from "./webhooks-flags.ts";

export const programs: readonly (CompletedProgram & ReferencePage)[] = [
  listed("up", upProgram),
  listed("apiserver", apiserverProgram),
  listed("controller-manager", controllerManagerProgram),
  listed("scheduler", schedulerProgram),
  { ...listed("agent", agentProgram), verbs: ["doctor"] },
  listed("proxy", proxyProgram),
  { ...listed("token", tokenProgram), verbs: verbs(tokenProgram) },
  { ...listed("webhooks", webhooksProgram), verbs: verbs(webhooksProgram) },
  { ...listed("kvstore", kvstoreProgram), verbs: verbs(kvstoreProgram) },
  listed("doctor", doctorProgram),
];

function listed(word: string, { name, summary, flags, gates }: ReferencePage): CompletedProgram & ReferencePage {
  return { word, name, summary, flags, ...(gates === undefined ? {} : { gates }) };
}

function verbs({ commands }: { readonly commands: readonly CommandUsage[] }): readonly string[] {
  return commands.map(({ command }) => command.split(" ")[0] ?? "");
}
