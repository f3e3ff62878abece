/**
 * The process that holds a pod's namespaces: a static ELF file of a few hundred bytes, generated as machine code, so
 * that no image has to be pulled. It
 *
 *   1. ignores SIGCHLD, so that the kernel reaps orphans when the pod shares one process namespace and it is process 1;
 *   2. exits with status 0 on SIGINT and SIGTERM (as process 1 it needs handlers for that);
 *   3. waits forever.
 */
import { type Architecture, ociArchive } from "./oci-archive.ts";

/** Increment the tag when the bytes change: hosts keep images by name. */
export const pauseImage = "svc.io/pause:1";

export function pauseArchive(architecture: Architecture): Buffer {
  return ociArchive({
    name: pauseImage,
    architecture,
    files: [{ path: "pause", mode: 0o755, data: pauseElf(architecture) }],
    entrypoint: ["/pause"],
    user: "65535:65535",
  });
}

const BASE = 0x400000;
/** ELF header and two program headers; the code follows. */
const CODE = 64 + 2 * 56;

const SIGINT = 2;
const SIGTERM = 15;
const SIGCHLD = 17;
const SIG_IGN = 1n;
/** The kernel requires it for handlers on x86-64; this handler never returns. */
const SA_RESTORER = 0x04000000n;

const machines = {
  amd64: { elf: 62, code: amd64Code },
  arm64: { elf: 183, code: arm64Code },
} as const;

export function pauseElf(architecture: Architecture): Buffer {
  const machine = machines[architecture];
  const draft = machine.code(0, 0);
  // Data is aligned to 8 bytes; lengths do not depend on the addresses, so the second pass has the final ones.
  const ignore = CODE + Math.ceil(draft.bytes.length / 8) * 8;
  const leave = ignore + ACTION_SIZE;
  const { bytes, exit } = machine.code(ignore - CODE, leave - CODE);
  const handler = BigInt(BASE + CODE + exit);
  const file = Buffer.alloc(leave + ACTION_SIZE);
  elfHeader(machine.elf, file.length).copy(file);
  bytes.copy(file, CODE);
  action(SIG_IGN, 0n, 0n).copy(file, ignore);
  action(handler, SA_RESTORER, handler).copy(file, leave);
  return file;
}

/** The kernel's `struct sigaction`, the same on both architectures: handler, flags, restorer, mask. */
const ACTION_SIZE = 32;

function action(handler: bigint, flags: bigint, restorer: bigint): Buffer {
  const bytes = Buffer.alloc(ACTION_SIZE);
  bytes.writeBigUInt64LE(handler, 0);
  bytes.writeBigUInt64LE(flags, 8);
  bytes.writeBigUInt64LE(restorer, 16);
  return bytes;
}

function elfHeader(machine: number, size: number): Buffer {
  const bytes = Buffer.alloc(CODE);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // 64 bits, little endian
  bytes.writeUInt16LE(2, 16); // executable
  bytes.writeUInt16LE(machine, 18);
  bytes.writeUInt32LE(1, 20);
  bytes.writeBigUInt64LE(BigInt(BASE + CODE), 24); // entry
  bytes.writeBigUInt64LE(64n, 32); // program headers
  bytes.writeUInt16LE(64, 52);
  bytes.writeUInt16LE(56, 54);
  bytes.writeUInt16LE(2, 56);
  bytes.writeUInt16LE(64, 58);
  // PT_LOAD, readable and executable: the whole file, aligned for kernels with 64 KiB pages.
  bytes.writeUInt32LE(1, 64);
  bytes.writeUInt32LE(5, 68);
  for (const [at, value] of [
    [80, BASE],
    [88, BASE],
    [96, size],
    [104, size],
    [112, 0x10000],
  ] as const) {
    bytes.writeBigUInt64LE(BigInt(value), at);
  }
  // PT_GNU_STACK, readable and writable: no executable stack.
  bytes.writeUInt32LE(0x6474e551, 120);
  bytes.writeUInt32LE(6, 124);
  bytes.writeBigUInt64LE(16n, 168);
  return bytes;
}

interface Code {
  readonly bytes: Buffer;
  /** The offset of the code that exits. */
  readonly exit: number;
}

/** `ignore` and `leave` are the offsets of the two actions from the first instruction. */
function amd64Code(ignore: number, leave: number): Code {
  const code: number[] = [];
  const int32 = (value: number): number[] => [value, value >> 8, value >> 16, value >> 24].map((byte) => byte & 0xff);
  const mov = (register: number, value: number): void => void code.push(0xb8 + register, ...int32(value));
  const [eax, edi] = [0, 7];
  const syscall = (number: number): void => {
    mov(eax, number);
    code.push(0x0f, 0x05);
  };
  const install = (signal: number, action: number): void => {
    mov(edi, signal);
    code.push(0x48, 0x8d, 0x35, ...int32(action - (code.length + 7))); // lea rsi, [rip + action]
    syscall(13); // rt_sigaction
  };
  code.push(0x31, 0xd2); // xor edx, edx
  code.push(0x41, 0xba, ...int32(8)); // mov r10d, 8: the size of the mask
  install(SIGCHLD, ignore);
  install(SIGINT, leave);
  install(SIGTERM, leave);
  const wait = code.length;
  syscall(34); // pause
  code.push(0xeb, (wait - (code.length + 2)) & 0xff); // jmp wait
  const exit = code.length;
  code.push(0x31, 0xff); // xor edi, edi
  syscall(60); // exit
  return { bytes: Buffer.from(code), exit };
}

function arm64Code(ignore: number, leave: number): Code {
  const words: number[] = [];
  const here = (): number => words.length * 4;
  const mov = (register: number, value: number): void => void words.push(0xd2800000 | (value << 5) | register);
  const syscall = (number: number): void => {
    mov(8, number);
    words.push(0xd4000001); // svc #0
  };
  const install = (signal: number, action: number): void => {
    mov(0, signal);
    const offset = action - here();
    words.push(0x10000000 | ((offset & 3) << 29) | (((offset >> 2) & 0x7ffff) << 5) | 1); // adr x1, action
    mov(2, 0);
    mov(3, 8);
    syscall(134); // rt_sigaction
  };
  install(SIGCHLD, ignore);
  install(SIGINT, leave);
  install(SIGTERM, leave);
  const wait = here();
  for (const register of [0, 1, 2, 3, 4]) mov(register, 0);
  syscall(73); // ppoll of nothing, without a timeout: arm64 has no pause
  words.push(0x14000000 | (((wait - here()) >> 2) & 0x3ffffff)); // b wait
  const exit = here();
  mov(0, 0);
  syscall(93); // exit
  const bytes = Buffer.alloc(here());
  for (const [index, word] of words.entries()) bytes.writeUInt32LE(word >>> 0, index * 4);
  return { bytes, exit };
}
