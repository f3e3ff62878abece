/**
 * Flex drivers: programs of the node, `<directory>/<vendor>~<driver>/<driver>`, called with a command; they write JSON
 * to stdout. Looked up for each call, so that new and replaced drivers are used at once.
 */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../../std/time/clock.ts";
import type { FlexResponse } from "./response.ts";

export interface FlexDriversOptions {
  /** `--volume-plugin-dir` */
  readonly directory: string;
  readonly clock: Clock;
}

/** Capabilities that `init` returns; absent ones are true. */
export interface FlexCapabilities {
  readonly attach: boolean;
  /** The agent applies fsGroup. */
  readonly fsGroup: boolean;
}

/** The driver does not support the command: the agent does the default. */
export class NotSupportedError extends Error {
  override readonly name = "NotSupported";
}

const CALL_MS = 120_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;

export class NoDriverError extends Error {
  override readonly name = "NoDriverError";
}

export class FlexDrivers {
  readonly #options: FlexDriversOptions;
  /** By path; bounded by the number of drivers. `init` is called again for a replaced program. */
  readonly #capabilities = new Map<string, { readonly version: string; readonly capabilities: FlexCapabilities }>();

  constructor(options: FlexDriversOptions) {
    this.#options = options;
  }

  /** Rejects with a `NoDriverError` when there is no such driver, and when `init` fails. */
  async capabilities(driver: string, signal?: AbortSignal): Promise<FlexCapabilities> {
    const path = this.#path(driver);
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    if (found?.isFile() !== true) {
      this.#capabilities.delete(path);
      throw new NoDriverError(`no volume plugin matched name: flexvolume-${driver}`);
    }
    const version = `${found.ino}:${found.ctimeNs}`;
    const known = this.#capabilities.get(path);
    if (known?.version === version) return known.capabilities;
    const { capabilities: reported } = await this.call(driver, "init", [], signal);
    const capabilities = { attach: reported.attach !== false, fsGroup: reported.fsGroup !== false };
    this.#capabilities.set(path, { version, capabilities });
    return capabilities;
  }

  /** Rejects with a `NotSupportedError` when the driver reports that, otherwise with the driver's message. */
  async call(driver: string, command: string, args: readonly string[], signal?: AbortSignal): Promise<FlexResponse> {
    const { clock } = this.#options;
    const path = this.#path(driver);
    const timeout = new AbortController();
    const timer = clock.timer(CALL_MS, () => timeout.abort());
    const cancel = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]);
    try {
      const { output, failure } = await runProgram(path, [command, ...args], cancel);
      signal?.throwIfAborted();
      if (timeout.signal.aborted) throw new Error(`driver call ${command} of ${driver} timed out`);
      return await checkResponse(command, output, failure);
    } finally {
      timer.cancel();
    }
  }

  #path(driver: string): string {
    return join(this.#options.directory, driver.replaceAll("/", "~"), basename(driver));
  }
}

interface RunResult {
  readonly output: string;
  readonly failure: Error | undefined;
}

function runProgram(path: string, args: readonly string[], signal: AbortSignal): Promise<RunResult> {
  return new Promise((resolve) => {
    const options = { signal, maxBuffer: OUTPUT_BYTES_MAX };
    execFile(path, args, options, (error, output) => resolve({ output, failure: error ?? undefined }));
  });
}

async function checkResponse(command: string, output: string, failure: Error | undefined): Promise<FlexResponse> {
  const { parseResponse } = await import("./response.ts");
  const parsed = parseResponse(output);
  if (parsed === undefined) {
    throw new Error(
      failure?.message ?? `Failed to unmarshal output for command: ${command}, output: "${output.trim()}"`,
    );
  }
  if (parsed.status === "Not supported") throw new NotSupportedError(`${command} is not supported by the driver`);
  if (parsed.status !== "Success" || failure !== undefined) {
    throw new Error(`${command} command failed, status: ${parsed.status}, reason: ${parsed.message}`);
  }
  return parsed;
}
