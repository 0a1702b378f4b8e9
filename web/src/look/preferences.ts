// web/src/look/preferences.ts: user preferences in local storage, such as the theme and the last choices. No secrets.
import { useCallback, useSyncExternalStore } from 'react';

const CHANGED = 'ags-preference';
const name = (key: string): string => `ags.${key}`;

export function readPreference<T>(key: string, otherwise: T): T {
  return parse(raw(key), otherwise);
}

export function writePreference(key: string, value: unknown): void {
  try {
    localStorage.setItem(name(key), JSON.stringify(value));
  } catch {
    // Storage may be full or disabled. The page works without it.
  }
  dispatchEvent(new Event(CHANGED));
}

export function usePreference<T>(key: string, otherwise: T): [T, (value: T) => void] {
  const text = useSyncExternalStore(subscribe, () => raw(key));
  const write = useCallback((value: T) => writePreference(key, value), [key]);
  return [parse(text, otherwise), write];
}

/** Updates start from the stored value, so that two changes in a row, or in two windows, do not overwrite each other. */
export function useStored<T>(key: string, otherwise: T): [T, (change: (now: T) => T) => void] {
  const [value] = usePreference(key, otherwise);
  const change = useCallback(
    (next: (now: T) => T) => writePreference(key, next(readPreference(key, otherwise))),
    [key, otherwise],
  );
  return [value, change];
}

function raw(key: string): string | null {
  try {
    return localStorage.getItem(name(key));
  } catch {
    return null;
  }
}

function parse<T>(text: string | null, otherwise: T): T {
  if (text === null) return otherwise;
  try {
    return JSON.parse(text) as T;
  } catch {
    return otherwise;
  }
}

function subscribe(changed: () => void): () => void {
  addEventListener(CHANGED, changed);
  addEventListener('storage', changed);
  return () => {
    removeEventListener(CHANGED, changed);
    removeEventListener('storage', changed);
  };
}
