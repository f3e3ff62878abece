/** The metrics of containers at `/metrics/cadvisor`, with the names and labels of cAdvisor. */
import type { CgroupSpec, CgroupUsage, CpuUsage, DeviceUsage, MemoryUsage } from "./cgroup-reader.ts";
import type { DiskUsage } from "./disk-usage.ts";
import type { SampleFamily } from "./metric-text.ts";
import type { InterfaceUsage, ProcessUsage } from "./network-usage.ts";

/** What was read of one cgroup. */
export interface ContainerReading {
  readonly usage: CgroupUsage;
  readonly spec: CgroupSpec;
  /** Seconds since 1970; undefined for a cgroup that is no container's. */
  readonly startedAt: number | undefined;
  readonly interfaces: readonly InterfaceUsage[];
  /** Processes of the cgroup and its children; undefined when they were not read. */
  readonly processCount: number | undefined;
  /** Sum over the processes, and the least limit. */
  readonly processes: ProcessUsage | undefined;
  /** File systems of the node. */
  readonly fileSystems: readonly FileSystemUsage[];
}

export interface FileSystemUsage {
  /** `/dev/sda1` */
  readonly device: string;
  readonly capacityBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
  readonly disk: DiskUsage;
}

/** A value with the labels that its family has in addition to those of the container. */
export interface LabelledValue {
  readonly value: number;
  /** Sorts between `container` and `id`. */
  readonly first?: string;
  /** Sorts between `image` and `name`. */
  readonly middle?: string;
  /** Sorts after `pod`. */
  readonly last?: string;
}

export interface ContainerFamily extends SampleFamily {
  readonly hasTime: boolean;
  readonly read: (reading: ContainerReading) => readonly LabelledValue[];
}

type Read = ContainerFamily["read"];

const SECOND_NS = 1e9;
const SECOND_MS = 1e3;
const SECOND_US = 1e6;

function one(read: (reading: ContainerReading) => number | undefined): Read {
  return (reading) => {
    const value = read(reading);
    return value === undefined ? [] : [{ value }];
  };
}

function cpu(read: (cpu: CpuUsage) => number | undefined): Read {
  return one(({ usage }) => usage.cpu && read(usage.cpu));
}

function memory(read: (memory: MemoryUsage) => number): Read {
  return one(({ usage }) => usage.memory && read(usage.memory));
}

function devices(read: (device: DeviceUsage) => number): Read {
  return ({ usage }) => usage.devices.map((each) => ({ value: read(each), first: `device="${each.device}",` }));
}

function fileSystems(read: (fileSystem: FileSystemUsage) => number): Read {
  return (reading) => reading.fileSystems.map((each) => ({ value: read(each), first: `device="${each.device}",` }));
}

function disks(read: (disk: DiskUsage) => number): Read {
  return fileSystems(({ disk }) => read(disk));
}

/** Of the devices that the cgroup counts, and of the node's disks that it does not. */
function transfers(ofDevice: (device: DeviceUsage) => number, ofDisk: (disk: DiskUsage) => number): Read {
  const [readDevices, readDisks] = [devices(ofDevice), disks(ofDisk)];
  return (reading) => {
    const counted = readDevices(reading);
    const names = new Set(counted.map(({ first }) => first));
    return [...counted, ...readDisks(reading).filter(({ first }) => !names.has(first))];
  };
}

/** Zeros, as kubelet has them, which does not measure these; of the whole node only, since each sample has its cost. */
function unmeasured(labels: readonly string[] = [""]): Read {
  return ({ fileSystems: { length } }) => (length === 0 ? [] : labels.map((last) => ({ value: 0, last })));
}

function interfaces(read: (usage: InterfaceUsage) => number): Read {
  return (reading) => reading.interfaces.map((each) => ({ value: read(each), middle: `interface="${each.name}",` }));
}

const readFailures: Read = ({ usage: { memory: found } }) => {
  if (found === undefined) return [];
  return [
    { type: "pgfault", values: found.pageFaults },
    { type: "pgmajfault", values: found.majorPageFaults },
  ].flatMap(({ type, values: [own, hierarchy] }) => [
    { value: own, first: `failure_type="${type}",`, last: ',scope="container"' },
    { value: hierarchy, first: `failure_type="${type}",`, last: ',scope="hierarchy"' },
  ]);
};

const TASK_STATES = ["iowaiting", "running", "sleeping", "stopped", "uninterruptible"];

const row = (name: string, type: "counter" | "gauge", help: string, read: Read, hasTime = true): ContainerFamily => ({
  name: `container_${name}`,
  type,
  help,
  read,
  hasTime,
});

/** In the order of their names. */
export const containerFamilies: readonly ContainerFamily[] = [
  row(
    "cpu_cfs_periods_total",
    "counter",
    "Number of elapsed enforcement period intervals.",
    cpu(({ throttling }) => throttling?.periods),
  ),
  row(
    "cpu_cfs_throttled_periods_total",
    "counter",
    "Number of throttled period intervals.",
    cpu(({ throttling }) => throttling?.throttledPeriods),
  ),
  row(
    "cpu_cfs_throttled_seconds_total",
    "counter",
    "Total time duration the container has been throttled.",
    cpu(({ throttling }) => throttling && throttling.throttledNs / SECOND_NS),
  ),
  row("cpu_load_average_10s", "gauge", "Value of container cpu load average over the last 10 seconds.", unmeasured()),
  row(
    "cpu_load_d_average_10s",
    "gauge",
    "Value of container cpu load.d average over the last 10 seconds.",
    unmeasured(),
  ),
  row(
    "cpu_system_seconds_total",
    "counter",
    "Cumulative system cpu time consumed in seconds.",
    cpu(({ systemNs }) => systemNs / SECOND_NS),
  ),
  row("cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", ({ usage }) =>
    usage.cpu === undefined ? [] : [{ value: usage.cpu.totalNs / SECOND_NS, first: 'cpu="total",' }],
  ),
  row(
    "cpu_user_seconds_total",
    "counter",
    "Cumulative user cpu time consumed in seconds.",
    cpu(({ userNs }) => userNs / SECOND_NS),
  ),
  row(
    "file_descriptors",
    "gauge",
    "Number of open file descriptors for the container.",
    one(({ processes }) => processes?.descriptors),
  ),
  row(
    "fs_inodes_free",
    "gauge",
    "Number of available Inodes",
    fileSystems(({ inodesFree }) => inodesFree),
  ),
  row(
    "fs_inodes_total",
    "gauge",
    "Number of Inodes",
    fileSystems(({ inodes }) => inodes),
  ),
  ...diskTimeFamilies(),
  row(
    "fs_limit_bytes",
    "gauge",
    "Number of bytes that can be consumed by the container on this filesystem.",
    fileSystems(({ capacityBytes }) => capacityBytes),
  ),
  row(
    "fs_read_seconds_total",
    "counter",
    "Cumulative count of seconds spent reading",
    disks(({ readMs }) => readMs / SECOND_MS),
  ),
  row(
    "fs_reads_bytes_total",
    "counter",
    "Cumulative count of bytes read",
    devices(({ readBytes }) => readBytes),
  ),
  row(
    "fs_reads_merged_total",
    "counter",
    "Cumulative count of reads merged",
    disks(({ readsMerged }) => readsMerged),
  ),
  row(
    "fs_reads_total",
    "counter",
    "Cumulative count of reads completed",
    transfers(
      ({ reads }) => reads,
      ({ reads }) => reads,
    ),
  ),
  row(
    "fs_sector_reads_total",
    "counter",
    "Cumulative count of sector reads completed",
    disks(({ sectorsRead }) => sectorsRead),
  ),
  row(
    "fs_sector_writes_total",
    "counter",
    "Cumulative count of sector writes completed",
    disks(({ sectorsWritten }) => sectorsWritten),
  ),
  row(
    "fs_usage_bytes",
    "gauge",
    "Number of bytes that are consumed by the container on this filesystem.",
    fileSystems(({ usedBytes }) => usedBytes),
  ),
  row(
    "fs_write_seconds_total",
    "counter",
    "Cumulative count of seconds spent writing",
    disks(({ writeMs }) => writeMs / SECOND_MS),
  ),
  row(
    "fs_writes_bytes_total",
    "counter",
    "Cumulative count of bytes written",
    devices(({ writtenBytes }) => writtenBytes),
  ),
  row(
    "fs_writes_merged_total",
    "counter",
    "Cumulative count of writes merged",
    disks(({ writesMerged }) => writesMerged),
  ),
  row(
    "fs_writes_total",
    "counter",
    "Cumulative count of writes completed",
    transfers(
      ({ writes }) => writes,
      ({ writes }) => writes,
    ),
  ),
  row(
    "last_seen",
    "gauge",
    "Last time a container was seen by the exporter",
    one(({ usage }) => Math.floor(usage.timeMs / 1000)),
  ),
  row(
    "memory_cache",
    "gauge",
    "Number of bytes of page cache memory.",
    memory(({ cache }) => cache),
  ),
  row(
    "memory_failcnt",
    "counter",
    "Number of memory usage hits limits",
    memory(({ limitHits }) => limitHits),
  ),
  row("memory_failures_total", "counter", "Cumulative count of memory allocation failures.", readFailures),
  row(
    "memory_kernel_usage",
    "gauge",
    "Size of kernel memory allocated in bytes.",
    memory(({ kernel }) => kernel),
  ),
  row(
    "memory_mapped_file",
    "gauge",
    "Size of memory mapped files in bytes.",
    memory(({ mappedFile }) => mappedFile),
  ),
  row(
    "memory_max_usage_bytes",
    "gauge",
    "Maximum memory usage recorded in bytes",
    memory(({ maxUsage }) => maxUsage),
  ),
  row(
    "memory_rss",
    "gauge",
    "Size of RSS in bytes.",
    memory(({ rss }) => rss),
  ),
  row(
    "memory_swap",
    "gauge",
    "Container swap usage in bytes.",
    memory(({ swap }) => swap),
  ),
  row(
    "memory_total_active_file_bytes",
    "gauge",
    "Current total active file in bytes.",
    memory(({ activeFile }) => activeFile),
  ),
  row(
    "memory_total_inactive_file_bytes",
    "gauge",
    "Current total inactive file in bytes.",
    memory(({ inactiveFile }) => inactiveFile),
  ),
  row(
    "memory_usage_bytes",
    "gauge",
    "Current memory usage in bytes, including all memory regardless of when it was accessed",
    memory(({ usage }) => usage),
  ),
  row(
    "memory_working_set_bytes",
    "gauge",
    "Current working set in bytes.",
    memory(({ workingSet }) => workingSet),
  ),
  ...networkFamilies(),
  row(
    "oom_events_total",
    "counter",
    "Count of out of memory events observed for the container",
    memory(({ oomKills }) => oomKills),
  ),
  ...pressureFamilies(),
  row(
    "processes",
    "gauge",
    "Number of processes running inside the container.",
    one(({ processCount }) => processCount),
  ),
  row(
    "sockets",
    "gauge",
    "Number of open sockets for the container.",
    one(({ processes }) => processes?.sockets),
  ),
  row(
    "spec_cpu_period",
    "gauge",
    "CPU period of the container.",
    one(({ spec }) => spec.cpuPeriodUs),
    false,
  ),
  row(
    "spec_cpu_quota",
    "gauge",
    "CPU quota of the container.",
    one(({ spec }) => spec.cpuQuotaUs),
    false,
  ),
  row(
    "spec_cpu_shares",
    "gauge",
    "CPU share of the container.",
    one(({ spec }) => spec.cpuShares),
    false,
  ),
  row(
    "spec_memory_limit_bytes",
    "gauge",
    "Memory limit for the container.",
    one(({ spec, usage }) => usage.memory && (spec.memoryBytes ?? 0)),
    false,
  ),
  row(
    "spec_memory_reservation_limit_bytes",
    "gauge",
    "Memory reservation limit for the container.",
    one(({ spec, usage }) => usage.memory && (spec.memoryReservationBytes ?? 0)),
    false,
  ),
  row(
    "spec_memory_swap_limit_bytes",
    "gauge",
    "Memory swap limit for the container.",
    one(({ spec, usage }) => usage.memory && (spec.memorySwapBytes ?? 0)),
    false,
  ),
  row(
    "start_time_seconds",
    "gauge",
    "Start time of the container since unix epoch in seconds.",
    one(({ startedAt }) => startedAt),
    false,
  ),
  row(
    "tasks_state",
    "gauge",
    "Number of tasks in given state",
    unmeasured(TASK_STATES.map((state) => `,state="${state}"`)),
  ),
  row(
    "threads",
    "gauge",
    "Number of threads running inside the container",
    one(({ usage }) => usage.threads),
  ),
  row(
    "threads_max",
    "gauge",
    "Maximum number of threads allowed inside the container, infinity if value is zero",
    one(({ usage, spec }) => (usage.threads === undefined ? undefined : (spec.threads ?? 0))),
  ),
  row(
    "ulimits_soft",
    "gauge",
    "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice",
    ({ processes }) =>
      processes === undefined ? [] : [{ value: processes.descriptorsMax ?? -1, last: ',ulimit="max_open_files"' }],
  ),
];

/** In seconds; without samples where the pressure is not measured. */
function pressureFamilies(): readonly ContainerFamily[] {
  const resources = [
    ["cpu", "CPU"],
    ["io", "IO"],
    ["memory", "memory"],
  ] as const;
  return resources.flatMap(([name, title]) => {
    const seconds = (kind: "full" | "some"): Read =>
      one(({ usage }) => {
        const found = usage.pressure?.[name];
        return found && found[kind].total / SECOND_US;
      });
    return [
      row(
        `pressure_${name}_stalled_seconds_total`,
        "counter",
        `Total time duration no tasks in the container could make progress due to ${title} congestion.`,
        seconds("full"),
      ),
      row(
        `pressure_${name}_waiting_seconds_total`,
        "counter",
        `Total time duration tasks in the container have waited due to ${title} congestion.`,
        seconds("some"),
      ),
    ];
  });
}

function diskTimeFamilies(): readonly ContainerFamily[] {
  return [
    row(
      "fs_io_current",
      "gauge",
      "Number of I/Os currently in progress",
      disks(({ inProgress }) => inProgress),
    ),
    row(
      "fs_io_time_seconds_total",
      "counter",
      "Cumulative count of seconds spent doing I/Os",
      disks(({ busyMs }) => busyMs / SECOND_MS),
    ),
    row(
      "fs_io_time_weighted_seconds_total",
      "counter",
      "Cumulative weighted I/O time in seconds",
      disks(({ weightedMs }) => weightedMs / SECOND_MS),
    ),
  ];
}

function networkFamilies(): readonly ContainerFamily[] {
  return [
    row(
      "network_receive_bytes_total",
      "counter",
      "Cumulative count of bytes received",
      interfaces((each) => each.rxBytes),
    ),
    row(
      "network_receive_errors_total",
      "counter",
      "Cumulative count of errors encountered while receiving",
      interfaces((each) => each.rxErrors),
    ),
    row(
      "network_receive_packets_dropped_total",
      "counter",
      "Cumulative count of packets dropped while receiving",
      interfaces((each) => each.rxDropped),
    ),
    row(
      "network_receive_packets_total",
      "counter",
      "Cumulative count of packets received",
      interfaces((each) => each.rxPackets),
    ),
    row(
      "network_transmit_bytes_total",
      "counter",
      "Cumulative count of bytes transmitted",
      interfaces((each) => each.txBytes),
    ),
    row(
      "network_transmit_errors_total",
      "counter",
      "Cumulative count of errors encountered while transmitting",
      interfaces((each) => each.txErrors),
    ),
    row(
      "network_transmit_packets_dropped_total",
      "counter",
      "Cumulative count of packets dropped while transmitting",
      interfaces((each) => each.txDropped),
    ),
    row(
      "network_transmit_packets_total",
      "counter",
      "Cumulative count of packets transmitted",
      interfaces((each) => each.txPackets),
    ),
  ];
}
