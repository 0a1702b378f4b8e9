// lib/process/inherited.ts: descriptors that a child would inherit. What Node itself opens is marked close-on-exec; whatever is not,
// and is not a standard stream, is a stranger: left open by the caller's shell, or opened by a library.
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const O_CLOEXEC = 0o2000000;

/** At the start, before anything is started: the sandbox would get them too. */
export function closeInherited(): void {
  for (const fd of inheritedDescriptors()) closeSync(fd);
}

export function inheritedDescriptors(): number[] {
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter((fd) => fd > 2 && !closesOnExec(fd));
}

function closesOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '';
    return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
  } catch {
    // The descriptor of the listing itself.
    return true;
  }
}
