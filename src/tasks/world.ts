// tasks/world.ts: what every verb knows about its caller. Made once in cli/, handed down; nothing below reads process.env.
export interface World {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  readonly gid: number;
  readonly userName: string;
  readonly shell: string;
  readonly stateDir: string;
  readonly cacheDir: string;
  readonly configFile: string;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly platform: string;
  readonly nodeArch: string;
  readonly pid: number;
  now(): Date;
}
