// web/src/look/theme.ts: the light or dark theme, and the palette for added and removed, success and failure.
import { useSyncExternalStore } from 'react';
import { readPreference, usePreference } from './preferences.ts';

const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

export type Palette = 'green-red' | 'blue-orange';

const dark = matchMedia('(prefers-color-scheme: dark)');

/** Applies the theme now and whenever the user or the system changes it. */
export function applyTheme(): void {
  const set = (): void => {
    document.documentElement.dataset['theme'] = shown();
    document.documentElement.dataset['palette'] = readPreference<Palette>('palette', 'green-red');
  };
  set();
  dark.addEventListener('change', set);
  addEventListener('ags-preference', set);
}

function shown(): 'light' | 'dark' {
  const theme = readPreference<Theme>('theme', 'system');
  return theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme;
}

export const usePalette = (): [Palette, (palette: Palette) => void] => usePreference<Palette>('palette', 'green-red');

export const useTheme = (): [Theme, (theme: Theme) => void] => usePreference<Theme>('theme', 'system');

/** The theme in effect, for code that cannot use CSS tokens. */
export function useShownTheme(): 'light' | 'dark' {
  return useSyncExternalStore(subscribe, shown);
}

function subscribe(changed: () => void): () => void {
  dark.addEventListener('change', changed);
  addEventListener('ags-preference', changed);
  return () => {
    dark.removeEventListener('change', changed);
    removeEventListener('ags-preference', changed);
  };
}
