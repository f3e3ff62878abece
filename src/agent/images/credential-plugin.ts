/** Runs one credential provider plugin: writes the request to its stdin and reads the response from its stdout. */
import { runWithStdin } from "../../std/process/run-with-stdin.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { PluginResponse } from "./credential-plugin-response.ts";

export interface PluginProgram {
  readonly path: string;
  readonly args: readonly string[];
  /** Added to the agent's environment; these variables have precedence. */
  readonly env: Readonly<Record<string, string>>;
  /** Of the request and of the response: `credentialprovider.kubelet.k8s.io/v1`. */
  readonly apiVersion: string;
}

export interface PluginRequest {
  /** The repository, without tag and digest. */
  readonly image: string;
  readonly serviceAccountToken?: string;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

/** Rejects without the plugin's output, which contains secrets. The program has exited in any case. */
export async function runPlugin(
  program: PluginProgram,
  request: PluginRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<PluginResponse> {
  const { path: command, args, env, apiVersion } = program;
  const input = `${JSON.stringify({ kind: "CredentialProviderRequest", apiVersion, ...request })}\n`;
  try {
    const { parseResponse } = await import("./credential-plugin-response.ts");
    const limits = { timeoutMs: TIMEOUT_MS, bytesMax: OUTPUT_BYTES_MAX };
    return parseResponse(await runWithStdin({ command, args, env }, input, limits, clock, signal), apiVersion);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(`error execing credential provider plugin ${command} for image ${request.image}: ${why}`, {
      cause,
    });
  }
}
