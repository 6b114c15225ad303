// The light and the dark background, and the reader's choice between them.

export const LOOKS = {
  light: { ground: '#fbfbf9', ink: '#1d2024' },
  dark: { ground: '#121417', ink: '#eceef0' },
};

// The choice outlasts the page if the browser stores such things for files.
export function remembered() {
  try {
    return localStorage.getItem('tsee-theme');
  } catch {
    return null;
  }
}

export function remember(theme) {
  try {
    localStorage.setItem('tsee-theme', theme);
  } catch {
    // this browser stores nothing for files
  }
}
