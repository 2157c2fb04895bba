// What the plugin answers about itself: describe and ping.

package plugd

import "fmt"

func (s *session) onDescribe(m *message) *Error {
	// Someone who asks by hand may offer nothing; the manifest says what is spoken here.
	if offered := m.Params.Protocol; offered != nil {
		if failure := s.checkVersions(offered.Versions); failure != nil {
			return failure
		}
		features := make(map[string]bool, len(offered.Features))
		for _, feature := range offered.Features {
			features[feature] = true
		}
		s.features.Store(&features)
	}
	s.answer(m.ID, s.manifest)
	return nil
}

func (s *session) checkVersions(versions []int) *Error {
	advice := "upgrade plugd"
	for _, version := range versions {
		if version == protocolVersion {
			return nil
		}
		if version > protocolVersion {
			advice = "upgrade the plugin"
		}
	}
	text := fmt.Sprintf("the plugin speaks protocol version %d and the host speaks %v: %s",
		protocolVersion, versions, advice)
	return &Error{Message: text, code: codeInvalidParams}
}

func (s *session) onPing(m *message) *Error {
	s.accept(m.ID)
	return nil
}
