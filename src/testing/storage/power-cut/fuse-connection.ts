/** The kernel's requests for a mounted `RecordedDisk`. */
import { close, closeSync, openSync, read, writeSync } from "node:fs";
import { encodeResponse, opcodes, parseRequest, REQUEST_BYTES, unanswered } from "./fuse-messages.ts";
import type { RecordedDisk } from "./recorded-disk.ts";

/**
 * A shell command that mounts the file system at `$0` in a mount namespace of its own, which ends with the program, and
 * becomes the program. File descriptor 3 is the connection.
 */
const MOUNT_AND_RUN = [
  'mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 recorded-disk "$0"',
  "exec 3>&-",
  'exec "$@"',
].join(" && ");

/** Requests that a slow disk delays. */
const delayed: ReadonlySet<number> = new Set([opcodes.write, opcodes.fsync, opcodes.fsyncdir]);

export class FuseConnection implements Disposable {
  readonly fd: number;
  /** The time that each write and each sync takes. */
  delayMs = 0;
  readonly #disk: RecordedDisk;
  #isOpen = true;

  constructor(disk: RecordedDisk) {
    this.fd = openSync("/dev/fuse", "r+");
    this.#disk = disk;
    this.#receive();
  }

  /** The command that runs `program` with the file system mounted at `path`; its file descriptor 3 must be `fd`. */
  command(path: string, program: readonly string[]): string[] {
    return ["unshare", "--mount", "sh", "-c", MOUNT_AND_RUN, path, ...program];
  }

  #receive(): void {
    const buffer = Buffer.alloc(REQUEST_BYTES);
    read(this.fd, buffer, 0, REQUEST_BYTES, null, (error, length) => {
      if (!this.#isOpen) return;
      // ENODEV: unmounted. Before the mount: EPERM.
      if (error?.code === "EPERM") return void setTimeout(() => this.#receive(), 5);
      if (error !== null && error.code !== "ENOENT" && error.code !== "EINTR") return this[Symbol.dispose]();
      if (error === null) this.#respond(buffer.subarray(0, length));
      this.#receive();
    });
  }

  #respond(bytes: Buffer): void {
    const request = parseRequest(bytes);
    const response = this.#disk.handle(request);
    if (unanswered.has(request.opcode)) return;
    const send = (): void => this.#send(request.unique, response);
    if (this.delayMs > 0 && delayed.has(request.opcode)) setTimeout(send, this.delayMs);
    else send();
  }

  #send(unique: bigint, response: Buffer | number): void {
    if (!this.#isOpen) return;
    const isError = typeof response === "number";
    const encoded = encodeResponse(unique, isError ? response : 0, isError ? undefined : response);
    try {
      writeSync(this.fd, encoded);
    } catch {
      // ENOENT: the request was interrupted, because the program was killed.
    }
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    close(this.fd);
  }
}

/** Whether programs here may mount FUSE file systems. */
export function canUseFuse(): boolean {
  if (process.getuid?.() !== 0) return false;
  try {
    closeSync(openSync("/dev/fuse", "r+"));
    return true;
  } catch {
    return false;
  }
}
