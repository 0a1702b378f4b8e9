// lib/process/inherited.ts: descriptors that a child would inherit. Node marks its own descriptors close-on-exec. Any other descriptor
// above the standard streams was left open by the caller's shell or opened by a library.
import { closeSync, readdirSync, readFileSync } from 'node:fs';

const O_CLOEXEC = 0o2000000;

/** Called first, before any program starts: the sandbox would inherit them too. */
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
    // This was the descriptor of the listing itself.
    return true;
  }
}
